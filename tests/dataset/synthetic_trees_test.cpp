#include "libalpa/dataset/synthetic_trees.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_statistics.h"
#include "libalpa/dataset/planted_labels.h"

namespace alpa {
namespace {

using testing::ElementsAre;

const GraphLimits kLimits{SyntheticTrees::usual_words, kPlantedClasses, 2};

/// As many as SST has for training.
const std::vector<VertexGraph>& drawn_trees() {
  static const std::vector<VertexGraph> trees = [] {
    const auto source = open_graphs("synthetic-trees", kLimits);
    std::vector<VertexGraph> read(static_cast<std::size_t>(source->samples()));
    for (std::size_t i = 0; i < read.size(); ++i) source->read(static_cast<std::int64_t>(i), read[i]);
    return read;
  }();
  return trees;
}

const GraphStatistics& of_drawn_trees() {
  static const GraphStatistics statistics = statistics_of_data("synthetic-trees", kLimits);
  return statistics;
}

TEST(SyntheticTrees, AreBinaryAndHaveWordsAtTheirLeavesAlone) {
  for (const VertexGraph& tree : drawn_trees()) {
    std::vector<int> parents(tree.vertices(), 0);
    for (std::int32_t vertex = 0; vertex < tree.vertices(); ++vertex) {
      const auto children = tree.children_of(vertex);
      EXPECT_EQ(children.size(), tree.tokens[vertex] < 0 ? 2u : 0u);
      EXPECT_LT(tree.tokens[vertex], SyntheticTrees::usual_words);
      EXPECT_GE(tree.labels[vertex], 0);
      for (const std::int32_t child : children) {
        EXPECT_LT(child, vertex);
        ++parents[child];
      }
    }
    EXPECT_EQ(std::ranges::count(parents, 1), tree.vertices() - 1);
    EXPECT_EQ(parents.back(), 0);
  }
}

TEST(SyntheticTrees, DependOnSeedAndNumberAlone) {
  const SyntheticTrees trees(5, 1000), again(5, 1000), others(6, 1000);
  VertexGraph tree, same, other;
  int equal = 0;
  for (const std::int64_t sample : {7, 0, 123456789, 7}) {
    trees.draw_tree(sample, tree);
    again.draw_tree(sample, same);
    others.draw_tree(sample, other);
    EXPECT_EQ(tree, same);
    EXPECT_EQ(tree.vertices(), 2 * trees.words(sample) - 1);
    equal += tree == other;
  }
  EXPECT_EQ(equal, 0);
}

// Facts of SST's 8544 train trees, and what other draws of this generator were found to be within.
TEST(SyntheticTrees, AreAsLargeAsThoseOfSst) {
  double sum = 0, squares = 0;
  for (const VertexGraph& tree : drawn_trees()) {
    const double words = (tree.vertices() + 1) / 2;
    EXPECT_GE(words, 2);
    EXPECT_LE(words, 56);
    sum += words;
    squares += words * words;
  }
  const double count = static_cast<double>(drawn_trees().size()), mean = sum / count;
  EXPECT_NEAR(mean, 19.14, 0.3);  // three times 9.3 / sqrt(8544)
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 9.2, 0.3);
}

TEST(SyntheticTrees, AreAsHighAndBatchAsThoseOfSst) {
  const GraphStatistics& trees = of_drawn_trees();
  // 9.84 to 9.94 with three seeds; a standard deviation of 4 gives the mean of 8544 one of 0.04.
  EXPECT_NEAR(trees.mean_height(), 9.89, 0.15);
  EXPECT_NEAR(trees.mean_rounds(16), 17.9, 0.4);
  EXPECT_NEAR(trees.mean_rounds(256), 22.9, 1.0);  // the few highest trees decide
  EXPECT_NEAR(256 * trees.mean_vertices() / trees.mean_rounds(256), 418, 20);
  const double shares[] = {.513, .120, .078, .057, .045, .037};
  for (int height = 0; height < 6; ++height)
    EXPECT_NEAR(trees.level_share(height), shares[height], 0.01) << height;
}

TEST(SyntheticTrees, TakeAsManyRoundsAsTheirStatisticsSay) {
  constexpr int group = 16, capacity = group * 111;
  GraphPacker packer;
  std::vector<std::int32_t> tokens(capacity), labels(capacity), structure(3 * capacity);
  double rounds = 0;
  std::vector<const VertexGraph*> samples;
  for (const VertexGraph& tree : drawn_trees()) {
    samples.push_back(&tree);
    if (samples.size() < group) continue;
    rounds += packer.pack(samples, BatchingPolicy::frontier, 2, {tokens, labels, structure});
    samples.clear();
  }
  // Of 534 groups, whose rounds deviate by 3.
  EXPECT_NEAR(rounds / 534, of_drawn_trees().mean_rounds(group), 0.4);
}

TEST(SyntheticTrees, HaveTheirWordsByZipfsLaw) {
  std::vector<int> counts(SyntheticTrees::usual_words, 0);
  int words = 0;
  for (const VertexGraph& tree : drawn_trees())
    for (const std::int32_t token : tree.tokens)
      if (token >= 0) ++counts[token], ++words;
  const double harmonic = 10.39;  // the sum of 1 / i up to 18280
  for (const int token : {0, 1, 9, 99})
    EXPECT_NEAR(counts[token] * harmonic * (token + 1) / words, 1, 0.15) << token;
}

TEST(SyntheticTrees, HaveLabelsInTheSharesOfSst) {
  std::vector<double> counts(kPlantedClasses, 0);
  for (const VertexGraph& tree : drawn_trees())
    for (const std::int32_t label : tree.labels) ++counts[label];
  const double shares[] = {.026, .108, .690, .139, .038};
  for (int label = 0; label < kPlantedClasses; ++label)
    EXPECT_NEAR(counts[label] / static_cast<double>(of_drawn_trees().vertices()), shares[label], 0.005)
        << label;
}

TEST(SyntheticTrees, AreDrawnOverTheWordsThatThereAre) {
  const SyntheticTrees trees(0, 20);
  VertexGraph tree;
  std::vector<int> counts(20, 0);
  for (int sample = 0; sample < 100; ++sample) {
    trees.draw_tree(sample, tree);
    for (const std::int32_t token : tree.tokens)
      if (token >= 0) ++counts.at(token);
  }
  EXPECT_THAT(counts, testing::Each(testing::Gt(0)));
}

TEST(CompleteTrees, AreSplitInHalves) {
  const SyntheticTrees trees(0, 20);
  VertexGraph tree;
  trees.draw_complete_tree(0, 4, tree);
  EXPECT_THAT(tree.children, ElementsAre(0, 1, 3, 4, 2, 5));
  trees.draw_complete_tree(0, 3, tree);
  EXPECT_THAT(tree.children, ElementsAre(0, 1, 2, 3));
}

TEST(Chains, HaveAWordAtEachVertexAndTheLengthsOfTheTrees) {
  const SyntheticTrees trees(0, 20);
  VertexGraph chain;
  for (int sample = 0; sample < 100; ++sample) {
    trees.draw_chain(sample, chain);
    EXPECT_EQ(chain.vertices(), trees.words(sample));
    EXPECT_THAT(chain.tokens, testing::Each(testing::Ge(0)));
    for (std::int32_t vertex = 1; vertex < chain.vertices(); ++vertex)
      EXPECT_THAT(chain.children_of(vertex), ElementsAre(vertex - 1));
  }
}

TEST(PlantedLabels, FollowFromWordsAndHowTheyArePutTogether) {
  const auto label = [](const PlantedMeaning& meaning) { return planted_label(meaning); };
  const PlantedMeaning good{PlantedMeaning::Kind::plain, 0.9}, bad{PlantedMeaning::Kind::plain, -0.9};
  const PlantedMeaning plain = meaning_of_word(0), no = meaning_of_word(7), very = meaning_of_word(11);
  EXPECT_EQ(label(plain), 2);
  EXPECT_EQ(label(no), 2);
  EXPECT_EQ(label(meaning_of(plain, good)), label(good));
  EXPECT_EQ(label(meaning_of(good, bad)), 2);
  EXPECT_GT(label(good), 2);
  EXPECT_LT(label(bad), 2);
  EXPECT_EQ(meaning_of(no, good).polarity, -0.9);
  EXPECT_GT(meaning_of(very, good).polarity, good.polarity);
  EXPECT_EQ(meaning_of(good, no).polarity, good.polarity) << "nothing follows";
  EXPECT_EQ(meaning_of(no, meaning_of(no, good)).polarity, good.polarity);
}

TEST(PlantedLabels, AreThoseOfSixteenKindsOfWords) {
  for (std::int32_t token = 0; token < 160; ++token) {
    const PlantedMeaning word = meaning_of_word(token), like = meaning_of_word(token + 16);
    EXPECT_EQ(word.kind, like.kind) << token;
    EXPECT_EQ(word.polarity > 0, like.polarity > 0) << token;
    EXPECT_EQ(word.polarity < 0, like.polarity < 0) << token;
  }
}

}  // namespace
}  // namespace alpa
