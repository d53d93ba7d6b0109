#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/dataset/convert_settings.h"
#include "libalpa/dataset/graph_formats.h"
#include "libalpa/dataset/sample_source.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

inline constexpr const char* converted_format = "alpa-data";
inline constexpr const char* converted_version = "1.0";

/// How many of so many rows are held out. Throws Error(input) where nothing would be left on either side.
std::int64_t held_out_rows(const ConvertSettings& settings, std::int64_t rows);

/// "1437 in 'digits.h5', 360 in 'digits-held-out.h5'".
std::string where_rows_went(const ConvertSettings& settings, std::int64_t kept, std::int64_t held_out);

/// What --shape says, {} where it is not given. Throws Error(usage) where it is no shape.
Shape wanted_shape(const ConvertSettings& settings);

void convert_tokens(const TokenSource& source, const ConvertSettings& settings, const Provenance& provenance,
                    Log& log);
void convert_samples(SampleSource& source, const ConvertSettings& settings, const Provenance& provenance,
                     Log& log);

/// Of graphs in which no vertex has two parents.
void convert_graphs(GraphSource& source, const GraphFacts& facts, const ConvertSettings& settings,
                    const Provenance& provenance, Log& log);

}  // namespace alpa
