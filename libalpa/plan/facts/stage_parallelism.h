#pragma once
#include <string>
#include <vector>

#include "libalpa/graph/dimension_roles.h"
#include "libalpa/plan/placement.h"

namespace alpa {

/// What runs over the loops that a mesh axis splits; `none`: all devices along it do the same work.
enum class Parallelism { data, expert, tensor, sequence, context, none };

const char* parallelism_word(Parallelism);  ///< "DP", "EP", "TP", "SP", "CP", "copies"

/// A mesh axis of a stage, as the strategies that were chosen have it, whatever the planner was asked for.
struct AxisUse {
  int devices = 1;
  /// What it does for at least a tenth of the forward's FLOPs, the most first, with its share of them.
  std::vector<std::pair<Parallelism, double>> shares = {};
  /// Tensors are split along it, and what is done to each position by itself goes by the sequence (Megatron's
  /// sequence parallelism).
  bool splits_sequence_between = false;
  bool operator==(const AxisUse&) const = default;
};

/// How the work and the states of a stage are split over its mesh.
struct StageParallelism {
  std::vector<AxisUse> axes;  ///< of two devices or more
  /// What is split over the axes of data parallelism, though not for its use: 0 nothing, 1 optimizer states,
  /// 2 sums of gradients too, 3 parameters too (ZeRO, SC'20). Counted where it holds of half the elements.
  int zero = 0;
  double zero_share = 0;  ///< of the elements that could be, those of that level

  /// "DP4 · EP4 · TP2 · ZeRO-1"; "1 device". An axis that does several things in turn has their shares of the
  /// work: "DP4|TP4 (70|30 %)".
  std::string text() const;
  bool operator==(const StageParallelism&) const = default;
};

StageParallelism stage_parallelism(const Placement&, StageIndex, const std::vector<ShardingRule>&,
                                   const std::vector<std::vector<FactorRole>>&);

}  // namespace alpa
