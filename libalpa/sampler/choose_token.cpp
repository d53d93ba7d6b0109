#include "libalpa/sampler/choose_token.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

namespace alpa {

std::int32_t choose_token(std::span<const float> scores, const TokenChoice& choice, double uniform) {
  assert(!scores.empty() && uniform >= 0 && uniform < 1);
  if (choice.temperature == 0)
    return static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin());
  std::vector<std::int32_t> words(scores.size());
  std::iota(words.begin(), words.end(), 0);
  std::ranges::stable_sort(words, [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  if (choice.top_k > 0) words.resize(std::min(words.size(), static_cast<std::size_t>(choice.top_k)));
  const double largest = scores[static_cast<std::size_t>(words.front())];
  std::vector<double> shares;
  double total = 0;
  for (const std::int32_t word : words) {
    const double share = std::exp((scores[static_cast<std::size_t>(word)] - largest) / choice.temperature);
    shares.push_back(share);
    total += share;
  }
  double kept = 0;
  std::size_t count = 0;
  while (count < words.size() && (count == 0 || kept < choice.top_p * total)) kept += shares[count++];
  double left = uniform * kept;
  for (std::size_t i = 0; i < count; ++i)
    if ((left -= shares[i]) < 0) return words[i];
  return words[count - 1];
}

double log_likelihood(std::span<const float> scores, std::int32_t token) {
  const double largest = *std::ranges::max_element(scores);
  double total = 0;
  for (const float score : scores) total += std::exp(score - largest);
  return scores[static_cast<std::size_t>(token)] - largest - std::log(total);
}

}  // namespace alpa
