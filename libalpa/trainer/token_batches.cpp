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

}  // namespace

TokenBatches::TokenBatches(const TokenSource& source, const SampleOrder& order,
                           const TrainingOptions& options, std::int64_t vocabulary)
    : BatchReader(order),
      source_(source),
      objective_(options.objective),
      vocabulary_(vocabulary),
      mask_token_(options.mask_token < 0 ? vocabulary - 1 : options.mask_token),
      hiding_key_(philox_key(static_cast<std::uint64_t>(options.seed), hash64("masked tokens"))),
      window_(static_cast<std::size_t>(order.sequence() + 1)) {
  if (objective_ == Objective::masked && mask_token_ >= vocabulary)
    throw Error(ErrorKind::input,
                fmt::format("[training] mask_token is {}, but the ids that the model takes are 0 to {}",
                            mask_token_, vocabulary - 1),
                "an id of the model's vocabulary, or -1 for its last");
}

void TokenBatches::fill(Split split, std::int64_t first_sample, std::span<std::int32_t> tokens,
                        std::span<std::int32_t> targets) {
  const auto sequence = static_cast<std::size_t>(order().sequence());
  assert(tokens.size() == targets.size() && tokens.size() % sequence == 0);
  for (std::size_t i = 0; i * sequence < tokens.size(); ++i) {
    const std::int64_t sample = first_sample + static_cast<std::int64_t>(i);
    const std::int64_t start = order().window_start(split, sample);
    source_.read(start, window_);
    check_tokens(source_, start, window_, vocabulary_);
    const auto sample_tokens = tokens.subspan(i * sequence, sequence);
    const auto sample_targets = targets.subspan(i * sequence, sequence);
    std::copy_n(window_.begin(), sequence, sample_tokens.begin());
    if (objective_ == Objective::masked)
      hide(split, sample, sample_tokens, sample_targets);
    else
      std::copy_n(window_.begin() + 1, sequence, sample_targets.begin());
  }
}

void TokenBatches::fill(Split split, std::int64_t first_sample, std::span<const std::span<std::byte>> into) {
  assert(into.size() == 2 && "tokens and targets");
  const auto ids = [](std::span<std::byte> bytes) {
    return std::span(reinterpret_cast<std::int32_t*>(bytes.data()), bytes.size() / sizeof(std::int32_t));
  };
  fill(split, first_sample, ids(into[0]), ids(into[1]));
}

void TokenBatches::hide(Split split, std::int64_t sample, std::span<std::int32_t> tokens,
                        std::span<std::int32_t> targets) const {
  const Hiding hiding(hiding_key_, split, sample, order().sequence());
  const auto hide_at = [&](std::size_t position, const PhiloxBlock& drawn) {
    targets[position] = tokens[position];
    const float way = philox_uniform(drawn.word[1]);
    const std::int64_t other = (drawn.word[2] * (vocabulary_ - 1)) >> 32;  // of all but the mask token
    if (way < 0.8f)
      tokens[position] = static_cast<std::int32_t>(mask_token_);
    else if (way < 0.9f)
      tokens[position] = static_cast<std::int32_t>(other + (other >= mask_token_));
  };
  bool any = false;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    targets[position] = -1;
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
