#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libalpa/program/step_samples.h"
#include "libalpa/trainer/sample_order.h"

namespace alpa {

/// Makes the model's inputs from the samples of some data.
class BatchReader {
 public:
  explicit BatchReader(SampleOrder order) : order_(order) {}
  virtual ~BatchReader() = default;

  /// Fills each input of samples, in the graph's order, with what a rank takes of the step whose samples
  /// begin with `first_sample`. Reads no others. Throws Error(input) at data that the model cannot take. One
  /// caller at a time.
  virtual void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
                    std::span<const std::span<std::byte>> into) = 0;

  /// How many targets these samples have, without looking at the data: the loss of a step is divided by the
  /// count of its whole batch, which must be known before the first backward.
  virtual std::int64_t target_count(Split split, std::int64_t first_sample, std::int64_t samples) const = 0;

  /// Likewise the vertices of each group of these samples, of models over graphs (RunPoint::group_rows);
  /// nothing of others. `into` is replaced.
  virtual void count_group_rows(Split, std::int64_t /*first_sample*/, std::int64_t /*samples*/,
                                std::vector<std::int32_t>& into) const {
    into.clear();
  }

  /// Whether fill() may run on a thread of its own: it asks the system for bytes of files, and HDF5, which
  /// one thread may call, for nothing.
  virtual bool can_read_ahead() const { return true; }

  /// Host memory that fill() holds beside what it fills, at most.
  virtual std::int64_t held_bytes() const { return 0; }

  virtual std::string description() const = 0;  ///< of the data, for the log
  virtual std::int64_t length() const = 0;      ///< of the data: tokens, or rows

  const SampleOrder& order() const { return order_; }

 private:
  SampleOrder order_;
};

}  // namespace alpa
