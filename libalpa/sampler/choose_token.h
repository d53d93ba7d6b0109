#pragma once
#include <cstdint>
#include <span>

namespace alpa {

/// How a token is drawn among the words, by their scores.
struct TokenChoice {
  double temperature = 1;  ///< scores are divided by it; 0: the highest, the first of several
  double top_p = 1;  ///< of the most likely words, as few as have this share of all (Holtzman et al., 2020)
  std::int64_t top_k = 0;  ///< at most so many of the most likely; 0: all
};

/// `scores` are the logarithms of likelihoods but for a constant, finite; `uniform` is in [0, 1). Of
/// equally likely words the first go first.
std::int32_t choose_token(std::span<const float> scores, const TokenChoice&, double uniform);

/// The logarithm of the likelihood of a word at temperature 1.
double log_likelihood(std::span<const float> scores, std::int32_t token);

}  // namespace alpa
