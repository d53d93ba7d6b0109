#pragma once
#include <functional>
#include <memory>

#include "libalpa/device/device.h"

struct CUstream_st;

namespace alpa::emulation {

/// A stream whose work waits until the host waits for some of it. Whichever streams can go on then, one does:
/// the first made where order is ascending, the last made where it is descending, any where it is random.
/// What lacks a wait for another stream then gives other results, and what leaves its memory too early reads
/// what is no longer there.
std::unique_ptr<Stream> make_stream();

/// Queues the work of a kernel or a library, at once where there is no stream.
void queue(CUstream_st*, std::function<void()> work);

/// Does all that is queued.
void synchronize();

}  // namespace alpa::emulation
