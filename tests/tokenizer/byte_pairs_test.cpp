#include "libalpa/tokenizer/byte_pairs.h"

#include <gmock/gmock.h>

#include <random>

namespace alpa {
namespace {

using testing::ElementsAre;

using Word = std::vector<std::int32_t>;

/// By the definition.
Word merged_naively(Word word, const std::vector<BytePair>& pairs) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const BytePair& pair : pairs) {
      for (std::size_t i = 0; i + 1 < word.size() && !changed; ++i)
        if (word[i] == pair.left && word[i + 1] == pair.right) {
          word[i] = pair.merged;
          word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          changed = true;
        }
      if (changed) break;
    }
  }
  return word;
}

Word merged(const BytePairs& pairs, Word word) {
  pairs.merge(word);
  return word;
}

TEST(BytePairs, MergesTheFirstOfTheListFirstAndOfEqualOnesTheLeftmost) {
  const BytePairs pairs(std::vector<BytePair>{{1, 2, 10}, {1, 1, 11}, {11, 10, 12}});
  EXPECT_THAT(merged(pairs, {1, 1, 1, 2}), ElementsAre(12));
  EXPECT_THAT(merged(pairs, {1, 1, 1}), ElementsAre(11, 1));
  EXPECT_THAT(merged(pairs, {}), ElementsAre());
  EXPECT_THAT(merged(pairs, {3}), ElementsAre(3));
}

TEST(BytePairs, TakesTheLastOfPairsThatAreThereTwice) {
  const BytePairs pairs(std::vector<BytePair>{{1, 2, 10}, {2, 3, 11}, {1, 2, 12}});
  EXPECT_THAT(merged(pairs, {1, 2, 3}), ElementsAre(1, 11));
  EXPECT_THAT(merged(pairs, {1, 2}), ElementsAre(12));
}

TEST(BytePairs, MergeWordsOfAnyLengthByTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<BytePair> list;
    std::int32_t ids = 3;
    for (int i = 0; i < 30; ++i) {
      const auto left = static_cast<std::int32_t>(random() % ids),
                 right = static_cast<std::int32_t>(random() % ids);
      list.push_back({left, right, ids++});
    }
    const BytePairs pairs(list);
    // A pair that is there again is the later one.
    for (auto pair = list.begin(); pair != list.end();)
      pair = std::any_of(pair + 1, list.end(),
                         [&](const BytePair& other) {
                           return other.left == pair->left && other.right == pair->right;
                         })
                 ? list.erase(pair)
                 : pair + 1;
    for (const std::size_t length : {5u, 47u, 48u, 49u, 200u}) {
      Word word(length);
      for (std::int32_t& id : word) id = static_cast<std::int32_t>(random() % 3);
      ASSERT_EQ(merged(pairs, word), merged_naively(word, list)) << "length " << length;
    }
  }
}

}  // namespace
}  // namespace alpa
