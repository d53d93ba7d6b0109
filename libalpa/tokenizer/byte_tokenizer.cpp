#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/tokenizer_kinds.h"

namespace alpa {
namespace {

constexpr std::int32_t byte_values = 256;

class ByteEncoder final : public TokenEncoder {
 public:
  void add(std::string_view text, std::vector<std::int32_t>& ids) override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  void end(std::vector<std::int32_t>&) override {}
};

class ByteTokenizer final : public Tokenizer {
 public:
  std::unique_ptr<TokenEncoder> encoder(SpecialTokens) const override {
    return std::make_unique<ByteEncoder>();
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= byte_values)
        throw Error(ErrorKind::input, fmt::format("token {} is no byte, which are 0 to 255", id),
                    "the tokenizer that made the tokens");
      text.push_back(static_cast<char>(id));
    }
    return text;
  }

  std::int64_t vocabulary() const override { return byte_values; }
  std::optional<std::int32_t> special_token(std::string_view) const override { return std::nullopt; }
  std::optional<std::int32_t> end_of_text() const override { return std::nullopt; }
  std::string description() const override { return "bytes"; }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace alpa
