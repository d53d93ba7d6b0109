#pragma once
// Internal to this module.
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/byte_pairs.h"

namespace alpa {

/// Hash of texts that are looked for without a string of their own.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// What words are merged by; shared by those that merge.
struct WordMerges {
  std::vector<std::int32_t> bytes;  ///< the id of each byte
  BytePairs pairs;
  TextMap<std::int32_t> whole;  ///< words that are tokens as they are
};

/// The longest word whose pairs are merged, so that this takes less than 256 MiB of memory.
inline constexpr std::size_t most_word_bytes = 4 << 20;

/// Error(input) of a longer one.
Error long_word();

/// The tokens of words, those of frequent short ones from memory. For one thread.
class WordTokens {
 public:
  explicit WordTokens(const WordMerges& merges) : merges_(merges) {}

  /// Throws long_word().
  void append(std::string_view word, std::vector<std::int32_t>& ids);

 private:
  struct Place {
    std::uint32_t first, count;  // in known_ids_
  };

  void find(std::string_view word);

  const WordMerges& merges_;
  TextMap<Place> known_;
  std::vector<std::int32_t> known_ids_, word_;
};

}  // namespace alpa
