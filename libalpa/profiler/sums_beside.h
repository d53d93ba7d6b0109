#pragma once
// Internal to this module.
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"

namespace alpa {

/// All-reduces of a buffer that go on beside what the caller computes, in the way of a lane that a plan
/// overlaps: on CPUs a second thread moves them (runtime/lane_threads), on GPUs they have a stream of their
/// own. Until they are finished nobody else uses the communicator.
class SumsBeside {
 public:
  /// Keeps references. Throws Error(run_time) where memory does not suffice.
  SumsBeside(Device&, Communicator&, std::int64_t bytes);

  void start(int calls);  ///< collective, as many calls on every rank
  void finish();          ///< blocks until all are done; throws what made one fail

 private:
  void move(int calls);

  Device& device_;
  Communicator& ranks_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceMemory> memory_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace alpa
