#include "libalpa/tokenizer/byte_pairs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>

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
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int32_t gone = -1;  // into the token before it
  assert(word.size() < none);
  const auto count = static_cast<std::uint32_t>(word.size());
  std::vector<std::uint32_t> before(count), behind(count);
  // Pairs that the word has, or had: the rank above, the place below.
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
  const auto pair_at = [&](std::uint32_t at) {
    return at == none || behind[at] == none ? nullptr : find(word[at], word[behind[at]]);
  };
  const auto enqueue = [&](std::uint32_t at) {
    if (const Slot* slot = pair_at(at)) queue.push(static_cast<std::uint64_t>(slot->rank) << 32 | at);
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? none : i - 1;
    behind[i] = i + 1 == count ? none : i + 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) enqueue(i);
  while (!queue.empty()) {
    const std::uint64_t top = queue.top();
    queue.pop();
    const auto at = static_cast<std::uint32_t>(top);
    const Slot* const pair = pair_at(at);
    if (!pair || static_cast<std::uint64_t>(pair->rank) != top >> 32) continue;  // no longer there
    const std::uint32_t next = behind[at];
    word[at] = pair->merged;
    word[next] = gone;
    behind[at] = behind[next];
    if (behind[next] != none) before[behind[next]] = at;
    behind[next] = none;
    enqueue(before[at]);
    enqueue(at);
  }
  std::erase(word, gone);
}

}  // namespace alpa
