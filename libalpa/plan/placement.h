#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/plan/plan.h"
#include "libalpa/semantics/stage_semantics.h"
#include "libalpa/sharding/strategy.h"

namespace alpa {

/// Where a plan puts the nodes and values of its graph, worked out once. Its stages must cover all layers.
class Placement {
 public:
  Placement(const Plan&, const GraphUses&);  ///< keeps references

  const Plan& plan() const { return plan_; }
  const GraphUses& uses() const { return uses_; }
  const Graph& graph() const { return uses_.graph; }

  StageIndex stage_of_node(NodeIndex node) const { return stage_of_node_[node]; }

  /// The stage that makes a value: of its producer; for a state that of the node that updates it, or that
  /// uses it first; for an input -1 (every mesh that uses it is fed).
  StageIndex stage_of_value(ValueIndex value) const { return stage_of_value_[value]; }

  /// The mesh of that stage; -1 for an input.
  MeshIndex mesh_of_value(ValueIndex value) const { return mesh_of_stage(stage_of_value(value)); }
  MeshIndex mesh_of_node(NodeIndex node) const { return mesh_of_stage(stage_of_node(node)); }
  MeshIndex mesh_of_stage(StageIndex stage) const {
    return stage < 0 ? MeshIndex() : plan_.stages[stage].mesh;
  }

  StageSemantics semantics(StageIndex stage) const;

  /// How a node is split on its mesh, worked out when first asked for. Expects a strategy that its rule
  /// allows.
  const NodeLayout& node_layout(NodeIndex node) const;

  /// Where a value rests on a mesh: as it is made, arrives or is loaded there.
  ShardingSpec layout_at_rest(ValueIndex value, MeshIndex mesh) const;

  /// What crosses to another mesh, without terms that are yet to be summed.
  Transfer transfer(const PlannedTransfer&) const;

  /// From which its users in a segment of a stage start. Where another stage of the mesh has made it, that is
  /// where it rests.
  ShardingSpec layout_at_start(ValueIndex value, StageIndex stage, Phase segment) const;

  /// That in the update, which is a mesh's: as the last user there takes it, and the global norm too where it
  /// is a gradient. Where it rests, if it has none.
  ShardingSpec layout_in_update(ValueIndex value, MeshIndex mesh) const;

 private:
  const Plan& plan_;
  const GraphUses& uses_;
  Indexed<NodeIndex, StageIndex> stage_of_node_;
  Indexed<ValueIndex, StageIndex> stage_of_value_;
  mutable Indexed<NodeIndex, std::optional<NodeLayout>> node_layouts_;
  std::map<std::pair<ValueIndex, MeshIndex>, const PlannedTransfer*> planned_;  ///< by value and mesh
  std::map<std::pair<ValueIndex, MeshIndex>, const SegmentLayouts*> layouts_of_inputs_;  ///< likewise
};

}  // namespace alpa
