#include "libalpa/trainer/token_batches.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/philox.h"

namespace alpa {
namespace {

/// What is hidden of one sample (Devlin et al., "BERT", section 3.1).
class Hiding {
 public:
  Hiding(std::uint64_t key, Split split, std::int64_t sample, std::int64_t sequence)
      : key_(key),
        stream_((split == Split::training ? 0 : std::uint64_t{1} << 63) | static_cast<std::uint64_t>(sample)),
        sequence_(sequence) {}

  PhiloxBlock draw(std::int64_t position) const {
    return philox(key_, stream_, static_cast<std::uint64_t>(position));
  }

  static bool is_chosen(const PhiloxBlock& drawn) { return philox_uniform(drawn.word[0]) < 0.15f; }

  /// The position that stands in where none was chosen.
  std::int64_t substitute() const { return draw(sequence_).word[0] % sequence_; }

 private:
  std::uint64_t key_, stream_;
  std::int64_t sequence_;
};

/// The first row of a micro-batch that either has, and the end of those that either has.
std::pair<std::int64_t, std::int64_t> rows_of_both(const InputSamples& a, const InputSamples& b) {
  if (a.rows == 0 || b.rows == 0) {
    const InputSamples& one = a.rows == 0 ? b : a;
    return {one.first_row, one.first_row + one.rows};
  }
  return {std::min(a.first_row, b.first_row), std::max(a.first_row + a.rows, b.first_row + b.rows)};
}

}  // namespace

TokenBatches::TokenBatches(const TokenSource& source, const SampleOrder& order,
                           const TrainingOptions& options, std::int64_t vocabulary)
    : BatchReader(order),
      source_(source),
      objective_(options.objective),
      vocabulary_(vocabulary),
      mask_token_(options.mask_token < 0 ? vocabulary - 1 : options.mask_token),
      hiding_key_(philox_key(static_cast<std::uint64_t>(options.seed), hash64("masked tokens"))),
      window_(static_cast<std::size_t>(order.sequence() + 1)),
      targets_(window_.size() - 1) {
  if (objective_ == Objective::masked && mask_token_ >= vocabulary)
    throw Error(ErrorKind::input,
                fmt::format("[training] mask_token is {}, but the ids that the model takes are 0 to {}",
                            mask_token_, vocabulary - 1),
                "an id of the model's vocabulary, or -1 for its last");
}

void TokenBatches::fill(Split split, std::int64_t first_sample, const StepSamples& samples,
                        std::span<const std::span<std::byte>> into) {
  assert(into.size() == 2 && samples.size() == 2 && "tokens and targets");
  const auto copy = [&](std::size_t input, std::int64_t micro_batch, std::int64_t row,
                        std::span<const std::int32_t> values) {
    const InputSamples& own = samples[input];
    if (row < own.first_row || row >= own.first_row + own.rows) return;
    const std::int64_t place = micro_batch * own.rows + row - own.first_row;
    std::ranges::copy(std::as_bytes(values), into[input].begin() + place * own.row_bytes);
  };
  const auto [first_row, end_row] = rows_of_both(samples[0], samples[1]);
  for (std::int64_t m = 0; m < samples[0].micro_batches; ++m)
    for (std::int64_t row = first_row; row < end_row; ++row) {
      make(split, first_sample + m * samples[0].micro_batch_samples + row);
      copy(0, m, row, tokens());
      copy(1, m, row, targets_);
    }
}

void TokenBatches::make(Split split, std::int64_t sample) {
  const std::int64_t start = order().window_start(split, sample);
  source_.read(start, window_);
  check_tokens(source_, start, window_, vocabulary_);
  if (objective_ == Objective::masked)
    hide(split, sample);
  else
    std::copy(window_.begin() + 1, window_.end(), targets_.begin());
}

void TokenBatches::hide(Split split, std::int64_t sample) {
  const std::span<std::int32_t> tokens = this->tokens();
  const Hiding hiding(hiding_key_, split, sample, order().sequence());
  const auto hide_at = [&](std::size_t position, const PhiloxBlock& drawn) {
    targets_[position] = tokens[position];
    const float way = philox_uniform(drawn.word[1]);
    const std::int64_t other = (drawn.word[2] * (vocabulary_ - 1)) >> 32;  // of all but the mask token
    if (way < 0.8f)
      tokens[position] = static_cast<std::int32_t>(mask_token_);
    else if (way < 0.9f)
      tokens[position] = static_cast<std::int32_t>(other + (other >= mask_token_));
  };
  bool any = false;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    targets_[position] = -1;
    const PhiloxBlock drawn = hiding.draw(static_cast<std::int64_t>(position));
    if (!Hiding::is_chosen(drawn)) continue;
    hide_at(position, drawn);
    any = true;
  }
  const std::int64_t substitute = hiding.substitute();
  if (!any) hide_at(static_cast<std::size_t>(substitute), hiding.draw(substitute));
}

std::int64_t TokenBatches::target_count(Split split, std::int64_t first_sample, std::int64_t samples) const {
  const std::int64_t sequence = order().sequence();
  if (objective_ == Objective::next_token) return samples * sequence;
  std::int64_t count = 0;
  for (std::int64_t sample = first_sample; sample < first_sample + samples; ++sample) {
    const Hiding hiding(hiding_key_, split, sample, sequence);
    std::int64_t chosen = 0;
    for (std::int64_t position = 0; position < sequence; ++position)
      chosen += Hiding::is_chosen(hiding.draw(position));
    count += std::max<std::int64_t>(chosen, 1);
  }
  return count;
}

}  // namespace alpa
