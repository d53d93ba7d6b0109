#include "libalpa/sampler/choose_token.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

namespace alpa {
namespace {

/// Words with their shares of all likelihood, but for a factor.
class Offer {
 public:
  Offer(std::span<const float> scores, double temperature)
      : scores_(scores), largest_(*std::ranges::max_element(scores)), temperature_(temperature) {}

  double share(std::int32_t word) const {
    return std::exp((scores_[static_cast<std::size_t>(word)] - largest_) / temperature_);
  }
  void add(std::int32_t word) {
    words_.push_back(word);
    shares_.push_back(share(word));
    total_ += shares_.back();
  }
  double total() const { return total_; }

  /// Leaves the first ones alone that have that share of all, one at least.
  void cut(double top_p) {
    const double wanted = top_p * total_;
    total_ = 0;
    std::size_t left = 0;
    while (left < words_.size() && (left == 0 || total_ < wanted)) total_ += shares_[left++];
    words_.resize(left);
  }

  std::int32_t draw(double uniform) const {
    double left = uniform * total_;
    for (std::size_t i = 0; i < words_.size(); ++i)
      if ((left -= shares_[i]) < 0) return words_[i];
    return words_.back();
  }

 private:
  std::span<const float> scores_;
  double largest_, temperature_;
  std::vector<std::int32_t> words_;
  std::vector<double> shares_;
  double total_ = 0;
};

/// Words from the likeliest on; of equal ones the first go first. Few are asked for, so no more are sorted.
class LikeliestWords {
 public:
  explicit LikeliestWords(std::span<const float> scores) : is_behind_{scores}, heap_(scores.size()) {
    std::iota(heap_.begin(), heap_.end(), 0);
    std::make_heap(heap_.begin(), heap_.end(), is_behind_);
  }
  bool are_left() const { return !heap_.empty(); }
  std::int32_t next() {
    std::pop_heap(heap_.begin(), heap_.end(), is_behind_);
    const std::int32_t word = heap_.back();
    heap_.pop_back();
    return word;
  }

 private:
  struct IsBehind {
    std::span<const float> scores;
    bool operator()(std::int32_t a, std::int32_t b) const {
      const float of_a = scores[static_cast<std::size_t>(a)], of_b = scores[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a < of_b : a > b;
    }
  };

  IsBehind is_behind_;
  std::vector<std::int32_t> heap_;
};

}  // namespace

std::int32_t choose_token(std::span<const float> scores, const TokenChoice& choice, double uniform) {
  assert(!scores.empty() && uniform >= 0 && uniform < 1);
  if (choice.temperature == 0)
    return static_cast<std::int32_t>(std::ranges::max_element(scores) - scores.begin());
  Offer offer(scores, choice.temperature);
  const auto count = static_cast<std::int32_t>(scores.size());
  if (choice.top_k > 0) {
    LikeliestWords likeliest(scores);
    for (std::int64_t i = 0; i < choice.top_k && likeliest.are_left(); ++i) offer.add(likeliest.next());
    offer.cut(choice.top_p);
  } else if (choice.top_p < 1) {
    double all = 0;
    for (std::int32_t word = 0; word < count; ++word) all += offer.share(word);
    LikeliestWords likeliest(scores);
    do offer.add(likeliest.next());
    while (likeliest.are_left() && offer.total() < choice.top_p * all);
  } else {
    for (std::int32_t word = 0; word < count; ++word) offer.add(word);
  }
  return offer.draw(uniform);
}

double log_likelihood(std::span<const float> scores, std::int32_t token) {
  const double largest = *std::ranges::max_element(scores);
  double total = 0;
  for (const float score : scores) total += std::exp(score - largest);
  return scores[static_cast<std::size_t>(token)] - largest - std::log(total);
}

}  // namespace alpa
