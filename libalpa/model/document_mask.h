#pragma once
// Internal to this module.
#include <optional>
#include <span>
#include <string>

#include "libalpa/graph/graph.h"

namespace alpa {

/// Where the document of each token begins, if query, key and value are of the model's tokens: a value of a
/// node of this name, which is added. Each attention has one of its own, which takes no time, so that no
/// stage waits for another's.
std::optional<ValueIndex> document_starts(GraphBuilder&, std::span<const ValueIndex> query_key_value,
                                          std::int64_t document_end, const std::string& name);

}  // namespace alpa
