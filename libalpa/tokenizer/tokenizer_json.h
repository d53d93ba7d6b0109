#pragma once
// Internal to this module.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/tokenizer/byte_pairs.h"
#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

/// One way in which a text is cut before its words are merged.
struct SplitStep {
  std::string pattern;           ///< of PCRE2
  bool keeps_matches = true;     ///< as pieces, else they are left out
  bool keeps_the_others = true;  ///< what is between matches
};

/// A token that is looked for in the text before it is cut.
struct AddedToken {
  std::int32_t id;
  std::string text;
  bool special;
  bool takes_space_before, takes_space_behind;
};

/// What a tokenizer.json says, of byte-level BPE.
struct ByteLevelBpe {
  std::vector<std::optional<std::string>> tokens;  ///< the bytes of each id; nullopt: no token
  std::vector<std::int32_t> bytes;                 ///< the id of each byte
  std::vector<BytePair> pairs;
  std::vector<AddedToken> added;
  std::vector<SplitStep> splits;
  std::optional<std::size_t> space_before;  ///< which of `splits` a space is put before pieces that begin
                                            ///< with none (add_prefix_space); splits.size(): before words
  bool whole_words_are_tokens = false;      ///< a word that is a token is not merged (ignore_merges)
  bool composes = false;                    ///< texts are brought to NFC
};

/// Throws Error(input) that names the file and the field.
ByteLevelBpe read_tokenizer_json(const TokenizerFile&);

}  // namespace alpa
