#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/dataset/token_source.h"

namespace alpa {

/// Opens what `--data` names:
///   - "synthetic:VOCABULARY[:LENGTH]": drawn tokens (LENGTH 2^24 unless given), of which every second
///   follows
///     from the one before it, so that there is something to learn;
///   - a mix of the others, MIX.toml: tables [[source]] with `data`, beside that file, `weight` and `repeat`,
///   how often its tokens may come (1), see MixedTokens;
///   - an HDF5 file with the one-dimensional integer dataset /tokens;
///   - a token file of llm.c (header of 256 integers, then 16- or 32-bit tokens);
///   - a Megatron token file: the .bin, its .idx, or the path without either;
///   - a text, whose bytes are the tokens.
/// What a file is shows in its first bytes; only then does ".bin" count. Throws Error(input) where it cannot
/// be read, is empty, damaged, of a kind of .bin that is not known, or seems to be neither of these nor text
/// (JSON lines, Parquet, anything binary).
std::unique_ptr<TokenSource> open_tokens(const std::string& data);

/// The files behind such a name: itself, and those that make it a Megatron pair, or that it mixes; {} where
/// it is "".
std::vector<std::filesystem::path> data_files(const std::string& data);

}  // namespace alpa
