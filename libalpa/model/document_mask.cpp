#include "libalpa/model/document_mask.h"

#include <algorithm>

namespace alpa {

std::optional<ValueIndex> document_starts(GraphBuilder& builder, std::span<const ValueIndex> query_key_value,
                                          std::int64_t document_end, const std::string& name) {
  const std::vector<Input>& inputs = builder.graph().inputs;
  const auto tokens = std::ranges::find(inputs, InputKind::tokens, &Input::kind);
  if (query_key_value.size() != 3 || tokens == inputs.end()) return std::nullopt;
  const Shape& places = builder.type(tokens->value).shape;
  const auto is_of_tokens = [&](ValueIndex value) {
    const Shape& shape = builder.type(value).shape;
    return shape.size() == 4 && std::equal(places.begin(), places.end(), shape.begin());
  };
  if (!std::ranges::all_of(query_key_value, is_of_tokens)) return std::nullopt;
  return builder.add("document_starts", {tokens->value}, {{"end", document_end}}, name);
}

}  // namespace alpa
