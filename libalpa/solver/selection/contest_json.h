#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "libalpa/solver/selection/integer_lists.h"

namespace alpa {

/// The members of an instance that mean something, as they stand in the file; nothing is compared yet.
struct ContestFields {
  IntegerLists intervals, node_costs, usages;
  IntegerLists edges, edge_costs;
  std::optional<std::int64_t> usage_limit;
};

/// Throws Error(input): a file that is missing or cut off, no JSON, a member that is missing, twice there or
/// of another type.
ContestFields read_contest_fields(const std::filesystem::path&);

}  // namespace alpa
