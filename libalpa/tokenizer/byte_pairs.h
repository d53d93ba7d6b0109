#pragma once
// Internal to this module.
#include <cstdint>
#include <span>
#include <vector>

namespace alpa {

/// Two neighbours that become one token; of those that a word has, the first of a list is merged first.
struct BytePair {
  std::int32_t left, right, merged;
};

/// Merges the tokens of a word: again and again the pair that is the first in the list, and of equal ones the
/// leftmost, until no pair of the list is left.
class BytePairs {
 public:
  /// Of pairs that are there twice the last counts. Ids are from 0 on.
  explicit BytePairs(std::span<const BytePair> pairs);

  /// Of less than 2^32 tokens, in a time that grows little faster than the word (n log n), and with up to 36
  /// bytes of memory for each.
  void merge(std::vector<std::int32_t>& word) const;

 private:
  struct Slot {
    std::uint64_t pair = ~std::uint64_t{0};
    std::int32_t rank = 0, merged = 0;
  };

  const Slot* find(std::int32_t left, std::int32_t right) const;
  void merge_short(std::vector<std::int32_t>& word) const;
  void merge_long(std::vector<std::int32_t>& word) const;

  std::vector<Slot> slots_;  ///< a power of two of them; a pair is at its hash or behind, before a free one
  int shift_ = 0;
};

}  // namespace alpa
