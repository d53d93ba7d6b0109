#include "libalpa/dataset/token_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "libalpa/base/error.h"

namespace alpa {

void check_tokens(const TokenSource& source, std::int64_t vocabulary) {
  if (const std::vector<const TokenSource*> parts = source.parts(); !parts.empty()) {
    for (const TokenSource* part : parts) check_tokens(*part, vocabulary);
    return;
  }
  constexpr std::int64_t piece_tokens = 1 << 16, most_pieces = 1 << 10;
  const std::int64_t pieces = (source.size() + piece_tokens - 1) / piece_tokens;
  const std::int64_t looked_at = std::min(pieces, most_pieces);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int64_t piece = looked_at == 1 ? 0 : i * (pieces - 1) / (looked_at - 1);
    const std::int64_t first = piece * piece_tokens;
    tokens.resize(static_cast<std::size_t>(std::min(piece_tokens, source.size() - first)));
    source.read(first, tokens);
    check_tokens(source, first, tokens, vocabulary);
  }
}

void check_tokens(const TokenSource& source, std::int64_t first, std::span<const std::int32_t> tokens,
                  std::int64_t vocabulary) {
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [vocabulary](std::int32_t token) {
    return token < 0 || token >= vocabulary;
  });
  if (bad == tokens.end()) return;
  throw Error(
      ErrorKind::input,
      fmt::format("token {} is {}, but the ids that the model takes are 0 to {}: {}",
                  first + (bad - tokens.begin()), *bad, vocabulary - 1, source.description()),
      *bad < 0 ? "make the data again, or give the right file"
      : source.description().starts_with("synthetic")
          ? fmt::format("synthetic:{}", vocabulary)
          : "use the tokens of the model's own tokenizer, or a model with a larger vocabulary (256 for "
            "the bytes of a text)");
}

}  // namespace alpa
