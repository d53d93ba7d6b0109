#include "libalpa/tokenizer/added_tokens.h"

#include <algorithm>
#include <iterator>

#include "libalpa/tokenizer/utf8.h"

namespace alpa {
namespace {

/// Where the white space that ends at `end` begins.
std::size_t space_before(std::string_view text, std::size_t end) {
  for (std::size_t begin = end;; end = begin) {
    while (begin > 0 && end - begin < 4 && utf8_character(text.substr(begin, end - begin)) == 0) --begin;
    if (begin == end || utf8_character(text.substr(begin, end - begin)) != end - begin ||
        !is_white_space(code_point(text.substr(begin, end - begin))))
      return end;
  }
}

std::size_t space_behind(std::string_view text, std::size_t begin) {
  for (;;) {
    const std::size_t bytes = utf8_character(text.substr(begin));
    if (bytes == 0 || !is_white_space(code_point(text.substr(begin, bytes)))) return begin;
    begin += bytes;
  }
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, SpecialTokens special) {
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(tokens_), [special](const AddedToken& token) {
    return !token.special || special == SpecialTokens::are_taken;
  });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  for (const AddedToken& token : tokens_) {
    begins_[static_cast<unsigned char>(token.text[0])] = true;
    takes_space_ = takes_space_ || token.takes_space_before || token.takes_space_behind;
  }
  if (!tokens_.empty()) longest_ = tokens_[0].text.size();
}

AddedTokens::Place AddedTokens::find(std::string_view text, bool text_may_follow) const {
  if (tokens_.empty()) return {false, 0, text.size(), text.size()};
  const std::size_t undecided =
      text_may_follow ? text.size() - std::min(longest_ - 1, text.size()) : text.size();
  for (std::size_t at = 0; at < undecided; ++at) {
    if (!begins_[static_cast<unsigned char>(text[at])]) continue;
    const auto token = std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& one) {
      return text.substr(at).starts_with(one.text);
    });
    if (token == tokens_.end()) continue;
    const std::size_t end = at + token->text.size();
    return {true, token->id, token->takes_space_before ? space_before(text, at) : at,
            token->takes_space_behind ? space_behind(text, end) : end};
  }
  return {false, 0, undecided, undecided};
}

}  // namespace alpa
