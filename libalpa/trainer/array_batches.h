#pragma once
#include "libalpa/dataset/array_source.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// Inputs from rows of arrays; each sample counts once.
class ArrayBatches final : public BatchReader {
 public:
  /// `source` must outlive it.
  ArrayBatches(ArraySource& source, const SampleOrder& order) : BatchReader(order), source_(source) {}

  void fill(Split split, std::int64_t first_sample, std::span<const std::span<std::byte>> into) override;
  std::int64_t target_count(Split, std::int64_t, std::int64_t samples) const override { return samples; }
  std::string description() const override { return source_.description(); }
  std::int64_t length() const override { return source_.rows(); }

 private:
  ArraySource& source_;
};

}  // namespace alpa
