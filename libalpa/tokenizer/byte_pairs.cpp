#include "libalpa/tokenizer/byte_pairs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <queue>
#include <tuple>

namespace alpa {
namespace {

constexpr std::int32_t no_rank = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t short_word = 48;  // up to which looking at all pairs is faster than a queue of them
constexpr std::uint64_t no_pair = ~std::uint64_t{0};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

/// Of Fibonacci hashing: its upper bits are well mixed.
std::uint64_t mixed(std::uint64_t key) { return (key ^ key >> 29) * 0x9e3779b97f4a7c15u; }

/// A pair that a long word has, or had.
struct QueuedPair {
  std::int32_t rank;
  std::size_t at;
  std::int32_t left, right;

  bool operator>(const QueuedPair& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

BytePairs::BytePairs(std::span<const BytePair> pairs)
    : slots_(std::bit_ceil(2 * pairs.size() + 2)), shift_(64 - std::countr_zero(slots_.size())) {
  std::int32_t rank = 0;
  for (const BytePair& pair : pairs) {
    const std::uint64_t key = pair_key(pair.left, pair.right);
    std::size_t at = mixed(key) >> shift_;
    while (slots_[at].pair != no_pair && slots_[at].pair != key) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {key, rank++, pair.merged};
  }
}

const BytePairs::Slot* BytePairs::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t key = pair_key(left, right);
  for (std::size_t at = mixed(key) >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].pair == key) return &slots_[at];
    if (slots_[at].pair == no_pair) return nullptr;
  }
}

void BytePairs::merge(std::vector<std::int32_t>& word) const {
  if (word.size() <= short_word)
    merge_short(word);
  else
    merge_long(word);
}

void BytePairs::merge_short(std::vector<std::int32_t>& word) const {
  std::array<const Slot*, short_word> pairs;  // of a token and the one behind it
  std::size_t count = word.size();
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = find(word[i], word[i + 1]);
  while (count > 1) {
    std::int32_t best = no_rank;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (pairs[i] && pairs[i]->rank < best) {
        best = pairs[i]->rank;
        at = i;
      }
    if (best == no_rank) break;
    word[at] = pairs[at]->merged;
    std::copy(word.begin() + static_cast<std::ptrdiff_t>(at) + 2,
              word.begin() + static_cast<std::ptrdiff_t>(count),
              word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    std::copy(pairs.begin() + at + 1, pairs.begin() + count - 1, pairs.begin() + at);
    --count;
    if (at > 0) pairs[at - 1] = find(word[at - 1], word[at]);
    if (at + 1 < count) pairs[at] = find(word[at], word[at + 1]);
  }
  word.resize(count);
}

void BytePairs::merge_long(std::vector<std::int32_t>& word) const {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  constexpr std::int32_t gone = -1;  // into the token before it
  std::vector<std::size_t> before(word.size()), behind(word.size());
  std::priority_queue<QueuedPair, std::vector<QueuedPair>, std::greater<>> queue;
  const auto enqueue = [&](std::size_t at) {
    if (at == none || behind[at] == none) return;
    const std::int32_t left = word[at], right = word[behind[at]];
    if (const Slot* slot = find(left, right)) queue.push({slot->rank, at, left, right});
  };
  for (std::size_t i = 0; i < word.size(); ++i) {
    before[i] = i == 0 ? none : i - 1;
    behind[i] = i + 1 == word.size() ? none : i + 1;
  }
  for (std::size_t i = 0; i < word.size(); ++i) enqueue(i);
  while (!queue.empty()) {
    const QueuedPair pair = queue.top();
    queue.pop();
    const std::size_t next = behind[pair.at];
    if (word[pair.at] != pair.left || next == none || word[next] != pair.right) continue;  // no longer there
    word[pair.at] = find(pair.left, pair.right)->merged;
    word[next] = gone;
    behind[pair.at] = behind[next];
    if (behind[next] != none) before[behind[next]] = pair.at;
    behind[next] = none;
    enqueue(before[pair.at]);
    enqueue(pair.at);
  }
  std::erase(word, gone);
}

}  // namespace alpa
