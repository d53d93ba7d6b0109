#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace alpa {

/// A long row of tokens with random access. It is only read: training makes no index files.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::int64_t size() const = 0;

  /// Tokens [first, first + into.size()), which must exist. Ids that do not fit 32 bits become the nearest
  /// that does, so that check_tokens() finds them. Throws Error(run_time) or Error(input) where a file cannot
  /// be read any more.
  virtual void read(std::int64_t first, std::span<std::int32_t> into) const = 0;

  /// For the log, e.g. "text 'poems.txt', 163817 tokens (its bytes)".
  virtual std::string description() const = 0;
};

/// Opens what `--data` names:
///   - "synthetic:VOCABULARY[:LENGTH]": drawn tokens (LENGTH 2^24 unless given), of which every second
///   follows
///     from the one before it, so that there is something to learn;
///   - an HDF5 file with the one-dimensional integer dataset /tokens;
///   - a token file of llm.c (header of 256 integers, then 16- or 32-bit tokens);
///   - a Megatron token file: the .bin, its .idx, or the path without either;
///   - a text, whose bytes are the tokens.
/// What a file is shows in its first bytes; only then does ".bin" count. Throws Error(input) where it cannot
/// be read, is empty, damaged, of a kind of .bin that is not known, or seems to be neither of these nor text
/// (JSON lines, Parquet, anything binary).
std::unique_ptr<TokenSource> open_tokens(const std::string& data);

/// The files behind such a name: itself, and those that make it a Megatron pair; {} where it is "".
std::vector<std::filesystem::path> data_files(const std::string& data);

/// Looks for tokens outside [0, vocabulary): at all of them, or in sources of more than 2^26 tokens at 2^26
/// spread evenly. Throws Error(input) that names the first.
void check_tokens(const TokenSource&, std::int64_t vocabulary);

/// The same for tokens that were read from `first` on.
void check_tokens(const TokenSource&, std::int64_t first, std::span<const std::int32_t> tokens,
                  std::int64_t vocabulary);

}  // namespace alpa
