#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libalpa/cluster/profile.h"
#include "libalpa/graph/graph.h"

namespace alpa {

/// Where a tile lies in its tensor; both empty: it is all of it.
struct TilePlace {
  Shape origin, whole;
};

/// An operator on the tiles that some strategy leaves to one device.
struct OperatorCase {
  std::string signature;  ///< what cost models ask for
  const OpDef* op = nullptr;
  std::vector<TensorType> operands, results;
  std::vector<TilePlace> operand_places,
      result_places;  ///< the last device's: with a causal mask it has most to do
  Attributes attributes;
  double flops = 0, bytes = 0;
  int uses = 0;  ///< nodes of the graphs that can come to this case

  /// `op` on whole tensors.
  static OperatorCase of(const OpDef& op, std::vector<TensorType> operands, Attributes attributes);

  OpCall call() const { return {operands, attributes}; }
  /// That its arithmetic or its memory traffic takes, at the rates of f32 where the devices do not compute in
  /// its type.
  double least_seconds(const Cluster&) const;
  bool is_low_precision() const { return dtype_bytes(operands[0].dtype) == 2; }
};

/// A collective over groups of that shape, all groups at once; `bytes` as in CollectiveSample.
struct CollectiveCase {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  std::int64_t bytes = 0;
  auto operator<=>(const CollectiveCase&) const = default;
};

/// All that is to be measured, each thing once.
struct Workload {
  std::vector<OperatorCase> operators;      ///< most used time first (times used x roofline)
  std::vector<CollectiveCase> collectives;  ///< sorted
  std::optional<OperatorCase> reference;    ///< one of the operators, timed again and again
};

/// What plans of these training graphs (one per size of micro-batch) on this cluster can ask for: every
/// strategy of every node on every mesh that the planner may use, what lowering adds (sums over tiles), and
/// each collective on each shape of group from 1 KiB to the largest tensor, all-reduces to all gradients
/// together (64 MiB at most), in powers of 4.
Workload workload(std::span<const Graph> graphs, const Cluster&);

}  // namespace alpa
