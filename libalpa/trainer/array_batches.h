#pragma once
#include <vector>

#include "libalpa/dataset/array_source.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// Inputs from rows of arrays; each sample counts once.
class ArrayBatches final : public BatchReader {
 public:
  /// `source` must outlive it.
  ArrayBatches(ArraySource& source, const SampleOrder& order) : BatchReader(order), source_(source) {}

  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override;
  std::int64_t target_count(Split, std::int64_t, std::int64_t samples) const override { return samples; }
  bool can_read_ahead() const override { return source_.can_read_ahead(); }
  std::int64_t held_bytes() const override { return source_.held_bytes(); }
  std::string description() const override { return source_.description(); }
  std::int64_t length() const override { return source_.rows(); }

 private:
  ArraySource& source_;
  std::vector<std::int64_t> rows_;  ///< of the input at hand
};

}  // namespace alpa
