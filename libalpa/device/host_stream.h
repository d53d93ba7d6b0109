#pragma once
#include <memory>

#include "libalpa/device/device.h"

namespace alpa {

/// A stream of a device whose memory is host memory: work is done when the call returns, inside a
/// host_access() bracket of `device`, which must outlive the stream.
std::unique_ptr<Stream> make_host_stream(Device& device);

}  // namespace alpa
