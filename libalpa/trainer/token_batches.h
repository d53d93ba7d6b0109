#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/dataset/token_source.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// Tokens and targets from one long row of tokens.
///
/// next_token: the target at each position is the token after it. masked (BERT): each position is chosen with
/// probability 0.15 (at least one per sample); where it is, the target is its token, and the model sees the
/// mask token in 80 % of the cases, another drawn id in 10 %, the token itself in 10 %; all other targets are
/// -1. What is chosen depends on the seed, the sample's number in the run and the position. The data may hold
/// the mask token too: where nothing was chosen it is a token like any other, as its target is -1.
class TokenBatches final : public BatchReader {
 public:
  /// `source` must outlive it. `vocabulary` is the model's; Error(input) where the mask token is not of it.
  TokenBatches(const TokenSource& source, const SampleOrder& order, const TrainingOptions& options,
               std::int64_t vocabulary);

  /// The inputs are tokens and targets, each i32[samples x sequence] in row-major order.
  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override;

  /// Those that are not -1.
  std::int64_t target_count(Split split, std::int64_t first_sample, std::int64_t samples) const override;

  bool can_read_ahead() const override { return source_.can_read_ahead(); }
  std::int64_t held_bytes() const override { return source_.held_bytes(); }
  std::string description() const override { return source_.description(); }
  std::int64_t length() const override { return source_.size(); }

 private:
  void make(Split split, std::int64_t sample);  ///< the sample at hand
  void hide(Split split, std::int64_t sample);

  const TokenSource& source_;
  Objective objective_;
  std::int64_t vocabulary_, mask_token_;
  std::uint64_t hiding_key_;
  // Of the sample at hand.
  std::span<std::int32_t> tokens() { return std::span(window_).first(targets_.size()); }
  std::vector<std::int32_t> window_;
  std::vector<std::int32_t> targets_;
};

}  // namespace alpa
