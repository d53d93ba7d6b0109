#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace alpa {

/// A long row of tokens with random access. It is only read: training makes no index files.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::int64_t size() const = 0;

  /// Whether read() may run on a thread of its own: it asks the system for bytes of files, or draws tokens,
  /// and does not use HDF5, which is for one thread alone.
  virtual bool can_read_ahead() const { return true; }

  /// Host memory that read() holds, at most.
  virtual std::int64_t held_bytes() const { return 0; }

  /// Tokens [first, first + into.size()), which must exist. One caller at a time. Ids that do not fit 32 bits
  /// become the nearest that does, so that check_tokens() finds them. Throws Error(run_time) or Error(input)
  /// where a file cannot be read any more.
  virtual void read(std::int64_t first, std::span<std::int32_t> into) const = 0;

  /// The token behind each document, where the source says so.
  virtual std::optional<std::int32_t> document_end() const { return std::nullopt; }

  /// The sources that it is mixed of; none where it is one.
  virtual std::vector<const TokenSource*> parts() const { return {}; }

  /// For the log, e.g. "text 'poems.txt', 163817 tokens (its bytes)".
  virtual std::string description() const = 0;
};

/// Looks for tokens outside [0, vocabulary): at all of them, or in sources of more than 2^26 tokens at 2^26
/// spread evenly; of a mix in each of its parts. Throws Error(input) that names the first.
void check_tokens(const TokenSource&, std::int64_t vocabulary);

/// The same for tokens that were read from `first` on.
void check_tokens(const TokenSource&, std::int64_t first, std::span<const std::int32_t> tokens,
                  std::int64_t vocabulary);

}  // namespace alpa
