#include <fmt/core.h>

#include <cassert>
#include <charconv>
#include <limits>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/philox.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

constexpr std::int64_t default_length = std::int64_t{1} << 24;
constexpr std::uint64_t stream_key = 0x73796e7468657469;

/// Tokens in pairs: the first is drawn, the second is the next id (0 after the last).
class SyntheticTokens final : public TokenSource {
 public:
  SyntheticTokens(std::int64_t vocabulary, std::int64_t length) : vocabulary_(vocabulary), length_(length) {}

  std::int64_t size() const override { return length_; }

  void read(std::int64_t first, std::span<std::int32_t> into) const override {
    assert(first >= 0 && first + static_cast<std::int64_t>(into.size()) <= length_);
    PhiloxBlock block{};
    std::uint64_t drawn = std::numeric_limits<std::uint64_t>::max();  // number of the block
    auto at = static_cast<std::uint64_t>(first);
    for (std::int32_t& token : into) {
      const std::uint64_t pair = at / 2;
      if (pair / 4 != drawn) {
        drawn = pair / 4;
        block = philox(stream_key, 0, drawn);
      }
      const std::int64_t id = (block.word[pair % 4] * vocabulary_) >> 32;
      token = static_cast<std::int32_t>(at % 2 == 0 ? id : (id + 1) % vocabulary_);
      ++at;
    }
  }

  std::string description() const override {
    return fmt::format("synthetic data, {} tokens below {}", length_, vocabulary_);
  }

 private:
  std::int64_t vocabulary_, length_;
};

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::unique_ptr<TokenSource> make_synthetic_tokens(const std::string& settings) {
  const std::size_t colon = settings.find(':');
  const auto vocabulary = integer(std::string_view(settings).substr(0, colon));
  const auto length =
      colon == std::string::npos ? default_length : integer(std::string_view(settings).substr(colon + 1));
  if (!vocabulary || !length || *vocabulary < 2 || *vocabulary > std::numeric_limits<std::int32_t>::max() ||
      *length < 1 || *length > kMostElements)
    throw Error(ErrorKind::input, fmt::format("cannot make data from 'synthetic:{}'", settings),
                "synthetic:VOCABULARY[:LENGTH], e.g. synthetic:256 or synthetic:50257:1000000");
  return std::make_unique<SyntheticTokens>(*vocabulary, *length);
}

}  // namespace alpa
