#include "libalpa/tokenizer/word_tokens.h"

#include <fmt/core.h>

namespace alpa {
namespace {

constexpr std::size_t longest_known = 32, most_known = 1 << 17;

}  // namespace

Error long_word() {
  return Error(ErrorKind::input,
               fmt::format("more than {} MiB of a document make one word", most_word_bytes >> 20),
               "break it by spaces or ends of lines, or leave the document out where it is no text");
}

void WordTokens::append(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() == 1) return ids.push_back(merges_.bytes[static_cast<unsigned char>(word[0])]);
  if (word.size() > longest_known) {
    find(word);
    ids.insert(ids.end(), word_.begin(), word_.end());
    return;
  }
  auto known = known_.find(word);
  if (known == known_.end()) {
    if (known_.size() == most_known) {
      known_.clear();
      known_ids_.clear();
    }
    find(word);
    const Place place{static_cast<std::uint32_t>(known_ids_.size()),
                      static_cast<std::uint32_t>(word_.size())};
    known_ids_.insert(known_ids_.end(), word_.begin(), word_.end());
    known = known_.emplace(word, place).first;
  }
  const auto first = known_ids_.begin() + known->second.first;
  ids.insert(ids.end(), first, first + known->second.count);
}

void WordTokens::find(std::string_view word) {
  if (const auto whole = merges_.whole.find(word); whole != merges_.whole.end()) {
    word_.assign(1, whole->second);
    return;
  }
  if (word.size() > most_word_bytes) throw long_word();
  word_.clear();
  for (const char c : word) word_.push_back(merges_.bytes[static_cast<unsigned char>(c)]);
  merges_.pairs.merge(word_);
}

}  // namespace alpa
