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
///
/// Ranks may be threads, each with a device and streams of its own. Who waits does the work of all, one piece
/// at a time, as GPUs go on whatever their hosts do.
std::unique_ptr<Stream> make_stream(const Device&);

/// Queues the work of a kernel or a library.
void queue(CUstream_st*, std::function<void()> work);

/// Queues what other ranks take part in: it has its turn again and again until it returns true.
void queue_until(CUstream_st*, std::function<bool()> is_done);

/// Waits for all that is queued on a device, for destructors: while an error travels up it is dropped.
void synchronize(const Device&);

}  // namespace alpa::emulation
