#include "libalpa/dataset/token_formats.h"

namespace alpa {

std::unique_ptr<TokenSource> open_text_tokens(InputFile file) {
  const std::int64_t bytes = file.bytes();
  return std::make_unique<PackedTokens>(std::move(file), PackedType::u8, 0, bytes, "text");
}

}  // namespace alpa
