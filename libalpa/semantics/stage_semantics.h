#pragma once
#include <vector>

#include "libalpa/semantics/graph_uses.h"
#include "libalpa/semantics/recompute_form.h"

namespace alpa {

/// Consecutive layers that run together.
struct StageRange {
  int first_layer = 0, end_layer = 0;  ///< one past the last
  int recomputed_layers = 0;  ///< its first ones: the form says what the device does not keep of them
  RecomputeForm form = RecomputeForm::full;

  bool spares(int layer) const { return layer < first_layer + recomputed_layers; }
};

/// What becomes of a stage's values, whatever their layouts: the planner prices it, lowering makes
/// instructions of it.
class StageSemantics {
 public:
  StageSemantics(const GraphUses& uses, const StageRange& range) : uses_(uses), range_(range) {}

  /// Whether a node is one of the stage's; the global norm is nobody's.
  bool has(NodeIndex node) const;
  bool makes(ValueIndex value) const;   ///< it is the result of a node here
  bool leaves(ValueIndex value) const;  ///< some other stage uses it

  /// Lives from the forward to the backward of a micro-batch. Inputs that the forward takes do too.
  bool is_saved(ValueIndex value) const;
  std::vector<ValueIndex> saved_values() const;  ///< ascending

  /// Is saved in the host's memory (RecomputeForm::offload): what a layer makes for its own stage, but for
  /// what is small beside that of which it is made, as the mean and the deviation that a norm saves: each
  /// move has its latency.
  bool is_offloaded(ValueIndex value) const;

  /// Whether the backward runs a node of the forward again, as it needs its result and that was not
  /// kept.
  Indexed<NodeIndex, bool> recomputed(const Indexed<ValueIndex, bool>& kept) const;

  /// The nodes that run in a segment, in their order: in the backward the last layer comes first, each with
  /// what is recomputed for it; a gradient is summed as soon as it is there, so that its memory is free
  /// again.
  std::vector<NodeIndex> order(Phase segment, const Indexed<ValueIndex, bool>& kept) const;

  /// The node that sums a gradient over micro-batches and needs not run, as the kernel of `node` can add to
  /// the sum, where result and sum have one layout; -1: there is none.
  NodeIndex sum_in_kernel(NodeIndex node) const;
  /// The same from the other end: whose kernel adds to this sum; -1: none can.
  NodeIndex kernel_of_sum(NodeIndex sum) const;

 private:
  const Graph& graph() const { return uses_.graph; }
  /// Whether the backward runs a node again, where it needs what that makes and it is not kept for others.
  bool may_run_again(NodeIndex node) const;

  const GraphUses& uses_;
  StageRange range_;
};

}  // namespace alpa
