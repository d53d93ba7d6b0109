#include "libalpa/trainer/sample_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/permutation.h"
#include "libalpa/base/philox.h"

namespace alpa {

SampleOrder::SampleOrder(std::int64_t windows, std::int64_t sequence, const TrainingOptions& options,
                         double held_out_fraction)
    : sequence_(sequence),
      key_(philox_key(static_cast<std::uint64_t>(options.seed), hash64("sample order"))) {
  held_out_windows_ = std::llround(held_out_fraction * static_cast<double>(windows));
  if (held_out_fraction > 0 && windows >= 2 * options.batch)
    held_out_windows_ = std::max(held_out_windows_, options.batch);
  held_out_windows_ =
      std::clamp<std::int64_t>(held_out_windows_, 0, held_out_fraction < 1 ? windows - 1 : windows);
  training_windows_ = windows - held_out_windows_;
}

SampleOrder::SampleOrder(std::int64_t tokens, const TrainingOptions& options, double held_out_fraction)
    : SampleOrder(std::max<std::int64_t>((tokens - 1) / options.sequence, 1), options.sequence, options,
                  held_out_fraction) {
  if (tokens <= options.sequence)
    throw Error(ErrorKind::input,
                fmt::format("the data has {} tokens, and one sample needs {}", tokens, sequence_ + 1),
                "give more data, or set a shorter sequence in [training]");
}

SampleOrder SampleOrder::of_rows(std::int64_t rows, const TrainingOptions& options,
                                 double held_out_fraction) {
  if (rows < 1) throw Error(ErrorKind::input, "the data has no samples", "give more data");
  return SampleOrder(rows, 1, options, held_out_fraction);
}

std::int64_t SampleOrder::windows(Split split) const {
  return split == Split::training ? training_windows_ : held_out_windows_;
}

std::int64_t SampleOrder::window_start(Split split, std::int64_t sample) const {
  assert(sample >= 0 && windows(split) > 0);
  const std::int64_t epoch = sample / windows(split), index = sample % windows(split);
  const std::int64_t window =
      split == Split::training ? permuted(index, training_windows_, key_, static_cast<std::uint64_t>(epoch))
                               : training_windows_ + index;
  return window * sequence_;
}

std::uint64_t SampleOrder::samples_hash(std::int64_t first, std::int64_t count) const {
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto start = static_cast<std::uint64_t>(window_start(Split::training, first + i));
    const std::uint64_t link[] = {hash, start};
    hash = hash64({reinterpret_cast<const char*>(link), sizeof link});
  }
  return hash;
}

}  // namespace alpa
