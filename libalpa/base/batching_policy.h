#pragma once
#include <optional>
#include <span>

#include "libalpa/base/constraint.h"

namespace alpa {

/// Which vertices of a group of samples that are graphs are computed together, as one round. Each comes in a
/// later round than its children.
enum class BatchingPolicy {
  serial,      ///< each vertex alone, sample after sample
  per_sample,  ///< those of one height of one sample, sample after sample
  frontier,    ///< those of one height of all samples (Cavs)
  agenda,      ///< DyNet's agenda, over two signatures: vertices without children, and with
  padded,      ///< of chains: all are made as long as the longest of the group, then as frontier
};

/// Their words, with a sentence for each.
std::span<const Word<BatchingPolicy>> batching_policies();

std::string_view batching_name(BatchingPolicy);

/// How samples become groups and rounds.
struct GraphBatching {
  std::optional<BatchingPolicy> policy;  ///< nullopt: it is not said, so frontier
  bool by_height = false;                ///< those of a step are sorted before groups are cut (HeightOrder)
  bool operator==(const GraphBatching&) const = default;
};

}  // namespace alpa
