#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "libalpa/device/device.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// The samples that a rank takes in its steps, in memory from which its device copies them. While a step
/// runs, a thread reads those of the next into a second buffer. A rank that takes none reads nothing.
class ReadAhead {
 public:
  /// Of each input of samples, in the graph's order (StepInputs::samples).
  using Samples = std::span<const std::span<const std::byte>>;

  /// Keeps a reference to the reader. Of one that cannot read ahead there is one buffer and no thread.
  ReadAhead(Device&, StepSamples, BatchReader& training);
  ~ReadAhead();  ///< waits for what is being read
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Those of the training step whose samples begin with `first_sample`, until the next call. Waits where
  /// they are still being read, and throws what reading them threw. Those of the step that begins with `next`
  /// are read from now on.
  Samples training(std::int64_t first_sample, std::optional<std::int64_t> next);

  /// Those of a step of any data, read by the caller while nothing else is being read; what has been read
  /// ahead stays.
  Samples read(BatchReader&, Split, std::int64_t first_sample);

  /// Host memory for the samples of a rank, at most, and for what its reader holds.
  static std::int64_t bytes(const StepSamples&, const BatchReader&);

 private:
  struct Buffer {
    std::unique_ptr<DeviceMemory> memory;
    std::vector<std::span<std::byte>> to_fill;       ///< [input]
    std::vector<std::span<const std::byte>> filled;  ///< the same
  };

  Buffer make_buffer(Device&) const;
  void wait_for_thread();
  void serve(std::stop_token);

  StepSamples samples_;
  BatchReader& reader_;
  Buffer current_, next_;              ///< the next is the thread's while it reads
  std::optional<std::int64_t> ahead_;  ///< the first sample of what is in next_, or will be

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_reading_ = false;
  std::exception_ptr failure_;  ///< of what was read ahead
  std::jthread thread_;         ///< last: it ends before all else goes
};

}  // namespace alpa
