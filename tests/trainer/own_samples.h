#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "libalpa/program/step_samples.h"

namespace alpa {

/// One micro-batch of so many samples, all of it, for inputs with rows of so many bytes.
inline StepSamples whole_batch(std::int64_t samples, std::initializer_list<std::int64_t> row_bytes) {
  StepSamples whole;
  for (const std::int64_t bytes : row_bytes) whole.push_back({1, samples, 0, samples, bytes});
  return whole;
}

/// What a rank takes of whole batches, a row per sample: the rows that StepSamples names, picked one by one.
class OwnSamples {
 public:
  OwnSamples(const StepSamples& taken, std::span<const std::span<const std::byte>> whole)
      : taken_(taken), whole_(whole.begin(), whole.end()) {
    for (const InputSamples& input : taken_) own_.emplace_back(static_cast<std::size_t>(input.bytes()));
    spans_ = {own_.begin(), own_.end()};
    pick();
  }

  /// Again, where the whole has changed.
  void pick() {
    for (std::size_t i = 0; i < own_.size(); ++i)
      for (std::int64_t row = 0; row < taken_[i].count(); ++row) {
        const auto bytes = static_cast<std::size_t>(taken_[i].row_bytes);
        const auto from = whole_[i].subspan(static_cast<std::size_t>(taken_[i].sample(row)) * bytes, bytes);
        std::ranges::copy(from, own_[i].begin() + row * taken_[i].row_bytes);
      }
  }

  /// As StepInputs::samples.
  std::span<const std::span<const std::byte>> spans() const { return spans_; }

 private:
  StepSamples taken_;
  std::vector<std::span<const std::byte>> whole_;
  std::vector<std::vector<std::byte>> own_;
  std::vector<std::span<const std::byte>> spans_;
};

}  // namespace alpa
