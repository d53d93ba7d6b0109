#pragma once
#include <memory>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// Carries buffers of `device` through its staging memory to `host`, a communicator for buffers in host
/// memory. Every call waits for the stream. Staging of sends is kept until wait_sends(); buffers are reused
/// from call to call. `device` must outlive the result.
std::unique_ptr<Communicator> make_staged_communicator(Device& device, std::unique_ptr<Communicator> host);

}  // namespace alpa
