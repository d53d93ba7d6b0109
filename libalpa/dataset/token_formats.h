#pragma once
// Internal to this module: the kinds of data that open_tokens() distinguishes, one source file each.
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "libalpa/dataset/packed_tokens.h"
#include "libalpa/dataset/token_source.h"

namespace alpa {

/// As many of a file's first bytes as show what it is.
inline constexpr std::int64_t format_bytes = 4096;

/// How many bytes the mark at the beginning of a text in UTF-8 has, if it is there.
inline std::size_t byte_order_mark(std::string_view text) { return text.starts_with("\xef\xbb\xbf") ? 3 : 0; }

/// What a file that begins so seems to be: "" for text, json_lines_kind, "a Parquet file", ...
std::string text_kind(std::string_view first_bytes);
inline constexpr std::string_view json_lines_kind = "JSON lines";

/// Throws Error(input) where a file that begins so seems to be something else than text, which its bytes are
/// no tokens of.
void check_is_text(const std::filesystem::path&, std::string_view first_bytes);

/// The bytes of any file.
std::unique_ptr<TokenSource> open_text_tokens(InputFile);

/// Whether a file begins as a token file of llm.c.
bool is_llmc(std::string_view first_bytes);
std::unique_ptr<TokenSource> open_llmc_tokens(InputFile);

/// Whether a file begins as a Megatron index.
bool is_megatron_index(std::string_view first_bytes);
std::unique_ptr<TokenSource> open_megatron_tokens(const std::filesystem::path& index,
                                                  const std::filesystem::path& tokens);

bool is_hdf5(std::string_view first_bytes);
std::unique_ptr<TokenSource> open_hdf5_tokens(const std::filesystem::path&);

/// `settings` is "VOCABULARY[:LENGTH]".
std::unique_ptr<TokenSource> make_synthetic_tokens(const std::string& settings);

}  // namespace alpa
