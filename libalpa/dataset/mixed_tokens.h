#pragma once
// Internal to this module.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/dataset/token_source.h"

namespace alpa {

/// Tokens of several sources, in the shares that are asked for, as one long row: pieces of 2^16 tokens (fewer
/// where a source has few) of one source and another in turn, so that every stretch has about the shares.
/// Each source gives its tokens from the first on; where one that may be repeated is at its end, it begins
/// anew. The row ends before a source has nothing left.
class MixedTokens final : public TokenSource {
 public:
  struct Part {
    std::unique_ptr<TokenSource> tokens;
    std::string name;
    double weight;        ///< > 0; of all weights together its share, which is rounded to thousandths
    std::int64_t repeat;  ///< how often its tokens may come, >= 1
  };

  /// `name` is for messages. Throws Error(input) where a share is less than a thousandth, or a source has too
  /// few tokens.
  MixedTokens(std::string name, std::vector<Part> parts);

  std::int64_t size() const override { return pieces_ * piece_tokens_; }
  bool can_read_ahead() const override;
  std::int64_t held_bytes() const override;
  void read(std::int64_t first, std::span<std::int32_t> into) const override;
  std::optional<std::int32_t> document_end() const override;
  std::vector<const TokenSource*> parts() const override;
  std::string description() const override;

 private:
  struct Turn {
    std::size_t part;
    std::int64_t before;  ///< turns that the part has before in a round
  };

  std::int64_t pieces_given(std::size_t part, std::int64_t pieces) const;
  bool suffices(std::int64_t pieces) const;
  void choose_turns();
  void choose_length();

  std::string name_;
  std::vector<Part> parts_;
  std::vector<Turn> turns_;                ///< of a round
  std::vector<std::int64_t> part_turns_;   ///< of each part in a round
  std::vector<std::int64_t> part_pieces_;  ///< that each part has
  std::int64_t piece_tokens_, pieces_ = 0;
};

/// Whether `--data` names a file that says what is mixed.
bool names_mix(const std::string& data);

std::unique_ptr<TokenSource> open_mixed_tokens(const std::filesystem::path& file);

/// The files that it names; none where it cannot be read.
std::vector<std::filesystem::path> mixed_files(const std::filesystem::path& file);

}  // namespace alpa
