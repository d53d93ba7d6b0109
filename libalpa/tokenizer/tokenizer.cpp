#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<std::int32_t> ids;
  const std::unique_ptr<TokenEncoder> encoding = encoder(special);
  encoding->add(text, ids);
  encoding->end(ids);
  return ids;
}

}  // namespace alpa
