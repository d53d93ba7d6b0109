#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/dataset/vertex_graph.h"

namespace alpa {

/// Sentences that are drawn, as binary trees of the shape of those of the Stanford Sentiment Treebank (SST),
/// or as chains. Of their own they are nobody's data: trees are as high and batch as those of SST do (8544
/// train trees; means of height 9.83, of 18.2 rounds for 16 and 23.9 for 256 samples, of 400 vertices a round
/// for 256), which complete or evenly split trees do not by factors of 1.7 to 3.4. Words follow Zipf's law
/// (exponent 1), labels at all vertices the planted task (planted_labels.h).
///
/// Every sample depends on the seed and its number alone. What words mean depends on neither, so that data of
/// several seeds has one task.
class SyntheticTrees {
 public:
  static constexpr std::int64_t usual_words = 18'280, usual_samples = 8'544;

  /// With tokens from 0 to words - 1.
  SyntheticTrees(std::uint64_t seed, std::int64_t words);

  /// How many words a sentence has, from 2 to 56: Gamma(4.23, 4.52), rounded.
  std::int32_t words(std::int64_t sample) const;

  /// Replaces `into` by the sentence as a tree: words are leaves, other vertices have two children and no
  /// token, left before right before their parent.
  void draw_tree(std::int64_t sample, VertexGraph& into) const;

  /// A tree of `leaves` words, split in halves, the left one the larger: complete where they are a power of
  /// two.
  void draw_complete_tree(std::int64_t sample, std::int32_t leaves, VertexGraph& into) const;

  /// A chain: each vertex has a word, and the vertex of the word before as its child.
  void draw_chain(std::int64_t sample, VertexGraph& into) const;

  std::int64_t held_bytes() const;

 private:
  std::uint64_t key_;
  std::vector<double> length_shares_;  ///< [words - fewest] of sentences of as many or fewer
  std::vector<double> word_shares_;    ///< [token] of words up to it
};

}  // namespace alpa
