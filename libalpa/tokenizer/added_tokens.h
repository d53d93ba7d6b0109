#pragma once
// Internal to this module.
#include <array>
#include <string_view>
#include <vector>

#include "libalpa/tokenizer/tokenizer_json.h"

namespace alpa {

/// The tokens that are looked for in texts before these are cut: of those at one place the longest.
class AddedTokens {
 public:
  AddedTokens(const std::vector<AddedToken>& tokens, SpecialTokens special);

  struct Place {
    bool is_there;
    std::int32_t id;
    std::size_t begin, end;  ///< the token, with space that it takes; where none is there, text in which
                             ///< there is none whatever follows ends at `begin`
  };

  /// The first token in a text.
  Place find(std::string_view text, bool text_may_follow) const;

  /// Whether some take the space beside them.
  bool take_space() const { return takes_space_; }

 private:
  std::vector<AddedToken> tokens_;  // the longest first
  std::array<bool, 256> begins_{};  // of their first bytes
  std::size_t longest_ = 0;
  bool takes_space_ = false;
};

}  // namespace alpa
