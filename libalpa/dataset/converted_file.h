#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/dataset/convert_settings.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/dataset/sample_source.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

inline constexpr const char* converted_format = "alpa-data";
inline constexpr const char* converted_version = "1.0";

/// How many of so many rows are held out. Throws Error(input) where nothing would be left on either side.
std::int64_t held_out_rows(const ConvertSettings& settings, std::int64_t rows);

/// "1437 in 'digits.h5', 360 in 'digits-held-out.h5'".
std::string where_rows_went(const ConvertSettings& settings, std::int64_t kept, std::int64_t held_out);

/// What --shape says, {} where it is not given. Throws Error(usage) where it is no shape.
Shape wanted_shape(const ConvertSettings& settings);

/// What the sources are called together: "'a.txt'", "'a.txt' and 2 others".
std::string source_names(const ConvertSettings& settings);

/// The tokenizer of a file of tokens.
struct MadeBy {
  TokenizerFile file;
  std::string description;
  std::int64_t vocabulary;
  std::optional<std::int32_t> end_of_text;  ///< the token behind each document, if it is known
};

/// `made_by` is kept as /tokenizer, so that the file says it all; nullopt where it is not known. Throws
/// Error(input) for tokens that it does not have.
void convert_tokens(const TokenSource& source, const std::optional<MadeBy>& made_by,
                    const ConvertSettings& settings, const Provenance& provenance, Log& log);
void convert_samples(SampleSource& source, const ConvertSettings& settings, const Provenance& provenance,
                     Log& log);

/// Of graphs in which no vertex has two parents.
void convert_graphs(GraphSource& source, const GraphFacts& facts, const ConvertSettings& settings,
                    const Provenance& provenance, Log& log);

}  // namespace alpa
