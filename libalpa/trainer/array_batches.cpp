#include "libalpa/trainer/array_batches.h"

namespace alpa {

void ArrayBatches::fill(Split split, std::int64_t first_sample, const StepSamples& samples,
                        std::span<const std::span<std::byte>> into) {
  for (std::size_t input = 0; input < into.size(); ++input) {
    rows_.clear();
    for (std::int64_t i = 0; i < samples[input].count(); ++i)
      rows_.push_back(order().window_start(split, first_sample + samples[input].sample(i)));
    source_.read(input, rows_, into[input]);
  }
}

}  // namespace alpa
