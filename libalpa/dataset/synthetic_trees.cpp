#include "libalpa/dataset/synthetic_trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "libalpa/base/fingerprint.h"
#include "libalpa/base/philox.h"
#include "libalpa/dataset/planted_labels.h"

namespace alpa {
namespace {

constexpr std::int32_t fewest_words = 2, most_words = 56;
constexpr double length_shape = 4.23, length_scale = 4.52;

/// Numbers from 0 to below 1 that belong to one sample, one after another.
class SampleDraws {
 public:
  SampleDraws(std::uint64_t key, std::int64_t sample)
      : key_(key), sample_(static_cast<std::uint64_t>(sample)) {}

  double next() {
    if (index_ % 4 == 0) block_ = philox(key_, sample_, index_ / 4);
    return block_.word[index_++ % 4] * 0x1p-32;
  }

 private:
  std::uint64_t key_, sample_, index_ = 0;
  PhiloxBlock block_{};
};

/// How a span of words is split in two.
struct SplitOdds {
  std::int32_t from;           ///< words, up to those of the next
  double left_one, right_one;  ///< that one side is a single word
  double a, b;                 ///< else of the Beta distribution of where
};

constexpr SplitOdds split_odds[] = {
    {3, .773, .227, 1, 1},       {4, .699, .170, 1, 1},       {5, .578, .150, 1.4, 1.6},
    {6, .533, .166, 1.2, 1.7},   {7, .517, .166, 1.0, 1.6},   {8, .503, .162, .81, 1.4},
    {10, .475, .174, .78, 1.6},  {12, .438, .189, .75, 1.6},  {15, .405, .196, .71, 1.55},
    {20, .349, .218, .74, 1.57}, {25, .292, .243, .75, 1.53}, {30, .228, .259, .83, 1.59}};

/// Of the Beta distribution, by rejection (Joehnk).
double beta_draw(double a, double b, SampleDraws& draws) {
  for (;;) {
    const double x = std::pow(draws.next(), 1 / a), y = std::pow(draws.next(), 1 / b);
    if (x + y <= 1 && x + y > 0) return x / (x + y);
  }
}

/// Words of the left part of a span.
std::int32_t drawn_split(std::int32_t words, SampleDraws& draws) {
  if (words == 2) return 1;
  const SplitOdds& odds = *std::prev(std::ranges::upper_bound(split_odds, words, {}, &SplitOdds::from));
  const double side = draws.next();
  if (side < odds.left_one) return 1;
  if (side < odds.left_one + odds.right_one || words == 3) return words - 1;
  const double share = beta_draw(odds.a, odds.b, draws);
  return std::min(2 + static_cast<std::int32_t>(share * (words - 3)), words - 2);
}

/// The share of the Gamma distribution (of scale 1) below x, by its series.
double gamma_share(double shape, double x) {
  double term = 1 / shape, sum = term;
  for (double n = shape + 1; term > 1e-17 * sum; ++n) sum += term *= x / n;
  return sum * std::exp(shape * std::log(x) - x - std::lgamma(shape));
}

std::int32_t place_of(double share, const std::vector<double>& shares_up_to) {
  const auto found = std::ranges::upper_bound(shares_up_to, share * shares_up_to.back());
  return static_cast<std::int32_t>(std::min(found, shares_up_to.end() - 1) - shares_up_to.begin());
}

/// Makes a tree from the left to the right.
template <class Split>
class SentenceTree {
 public:
  SentenceTree(SampleDraws& draws, const std::vector<double>& word_shares, Split split, VertexGraph& into)
      : draws_(draws), word_shares_(word_shares), split_(split), graph_(into) {}

  /// Recursive: a split takes at least one word away, and there are at most 56, or halves.
  PlantedMeaning add(std::int32_t words) {
    if (words == 1) {
      const std::int32_t token = place_of(draws_.next(), word_shares_);
      const PlantedMeaning meaning = meaning_of_word(token);
      graph_.add(token, planted_label(meaning));
      return meaning;
    }
    const std::int32_t of_left = split_(words);
    const PlantedMeaning left = add(of_left);
    const std::int32_t left_vertex = graph_.vertices() - 1;
    const PlantedMeaning meaning = meaning_of(left, add(words - of_left));
    graph_.add(-1, planted_label(meaning), std::array{left_vertex, graph_.vertices() - 1});
    return meaning;
  }

 private:
  SampleDraws& draws_;
  const std::vector<double>& word_shares_;
  Split split_;
  VertexGraph& graph_;
};

}  // namespace

SyntheticTrees::SyntheticTrees(std::uint64_t seed, std::int64_t words)
    : key_(philox_key(seed, hash64("synthetic trees"))) {
  for (std::int32_t length = fewest_words; length <= most_words; ++length)
    length_shares_.push_back(length == most_words ? 1
                                                  : gamma_share(length_shape, (length + 0.5) / length_scale));
  double sum = 0;
  for (std::int64_t word = 1; word <= words; ++word)
    word_shares_.push_back(sum += 1 / static_cast<double>(word));
}

std::int32_t SyntheticTrees::words(std::int64_t sample) const {
  return fewest_words + place_of(SampleDraws(key_, sample).next(), length_shares_);
}

void SyntheticTrees::draw_tree(std::int64_t sample, VertexGraph& into) const {
  into.clear();
  SampleDraws draws(key_, sample);
  const std::int32_t count = fewest_words + place_of(draws.next(), length_shares_);
  const auto split = [&](std::int32_t of) { return drawn_split(of, draws); };
  SentenceTree(draws, word_shares_, split, into).add(count);
}

void SyntheticTrees::draw_complete_tree(std::int64_t sample, std::int32_t leaves, VertexGraph& into) const {
  into.clear();
  SampleDraws draws(key_, sample);
  const auto split = [](std::int32_t of) { return of - of / 2; };
  SentenceTree(draws, word_shares_, split, into).add(leaves);
}

void SyntheticTrees::draw_chain(std::int64_t sample, VertexGraph& into) const {
  into.clear();
  SampleDraws draws(key_, sample);
  const std::int32_t count = fewest_words + place_of(draws.next(), length_shares_);
  PlantedMeaning before, so_far;  // of the last word, and of all
  for (std::int32_t vertex = 0; vertex < count; ++vertex) {
    const std::int32_t token = place_of(draws.next(), word_shares_);
    const PlantedMeaning word = meaning_of_word(token);
    // What negates or intensifies, the word that follows it.
    const PlantedMeaning in_place =
        before.kind == PlantedMeaning::Kind::plain ? word : meaning_of(before, word);
    so_far = meaning_of(so_far, in_place);
    before = word;
    const std::int32_t child = vertex - 1;
    into.add(token, planted_label(so_far), std::span(&child, vertex == 0 ? 0 : 1));
  }
}

std::int64_t SyntheticTrees::held_bytes() const {
  return static_cast<std::int64_t>((length_shares_.size() + word_shares_.size()) * sizeof(double));
}

}  // namespace alpa
