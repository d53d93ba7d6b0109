#pragma once
// Internal to this module.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/dataset/convert_settings.h"
#include "libalpa/dataset/partial_tokens.h"
#include "libalpa/dataset/text_files.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

/// The id that --end-of-text asks for, if any; `usual` where it leaves that open. Throws Error(usage) for one
/// that the tokenizer does not have.
std::optional<std::int32_t> end_of_text_id(const Tokenizer& tokenizer, std::optional<std::int32_t> usual,
                                           const ConvertSettings& settings);

/// The tokens of all documents of the files, one after another, each with `end_of_text` behind it; `field`
/// has the text of JSON lines. They are kept as `tokens`, so that memory does not grow with the texts, and
/// those that are there already are not made again. Throws Error(input) that names file and line.
std::unique_ptr<TokenSource> encode_texts(const std::vector<TextFile>& files, const Tokenizer& tokenizer,
                                          std::optional<std::int32_t> end_of_text, const std::string& field,
                                          PartialTokens& tokens, Log& log);

}  // namespace alpa
