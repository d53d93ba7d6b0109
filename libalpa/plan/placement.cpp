#include "libalpa/plan/placement.h"

#include <algorithm>

namespace alpa {

Placement::Placement(const Plan& plan, const GraphUses& uses) : plan_(plan), uses_(uses) {
  for (const Node& node : graph().nodes) stage_of_node_.push_back(stage_of_layer(plan, node.layer));
  node_layouts_.resize(graph().nodes.size());
  for (const ValueIndex v : graph().values.indices()) {
    NodeIndex maker = value_of(graph(), v).producer;
    if (const StateIndex state = uses.state_at[v]; state >= 0) {
      const ValueIndex next = graph().states[state].next;
      maker = next >= 0 ? value_of(graph(), next).producer : uses.users_of(v).front();
    }
    stage_of_value_.push_back(maker < 0 ? StageIndex() : stage_of_node(maker));
  }
  for (const PlannedTransfer& transfer : plan.transfers)
    planned_.insert({{transfer.value, transfer.to_mesh}, &transfer});
  for (const InputLayouts& input : plan.inputs)
    layouts_of_inputs_.insert({{input.value, input.mesh}, &input.in_segments});
}

StageSemantics Placement::semantics(StageIndex stage) const {
  const StagePlan& of = plan_.stages[stage];
  return {uses_, {of.first_layer, of.end_layer, of.recomputed_layers, of.recompute_form}};
}

const NodeLayout& Placement::node_layout(NodeIndex n) const {
  std::optional<NodeLayout>& known = node_layouts_[n];
  if (!known) {
    const Node& node = node_of(graph(), n);
    const std::vector<TensorType> whole = operand_types(graph(), node);
    known = layout_of(*node.op, {whole, node.attributes}, plan_.node_strategy[n],
                      plan_.mesh_of(stage_of_node(n)).shape);
  }
  return *known;
}

ShardingSpec Placement::layout_at_rest(ValueIndex value, MeshIndex mesh) const {
  if (mesh_of_value(value) == mesh) return plan_.value_layout[value];
  const auto transfer = planned_.find({value, mesh});
  return transfer != planned_.end() ? transfer->second->layout
                                    : replicated_spec(value_of(graph(), value).type.shape.size());
}

Transfer Placement::transfer(const PlannedTransfer& planned) const {
  const MeshIndex from = mesh_of_value(planned.value);
  return {value_of(graph(), planned.value).type, plan_.meshes[from], plan_.meshes[planned.to_mesh],
          without_terms(layout_at_rest(planned.value, from)), planned.layout};
}

ShardingSpec Placement::layout_at_start(ValueIndex value, StageIndex stage, Phase segment) const {
  const MeshIndex mesh = mesh_of_stage(stage);
  if (segment == Phase::update) return layout_in_update(value, mesh);
  const SegmentLayouts* layouts = nullptr;
  if (mesh_of_value(value) == mesh) {
    const bool of_other =
        value_of(graph(), value).kind == ValueKind::computed && stage_of_value(value) != stage;
    if (!of_other) layouts = &plan_.segment_layouts[value];
  } else if (const auto transfer = planned_.find({value, mesh}); transfer != planned_.end()) {
    layouts = &transfer->second->in_segments;
  } else if (const auto input = layouts_of_inputs_.find({value, mesh}); input != layouts_of_inputs_.end()) {
    layouts = input->second;
  }
  if (!layouts) return layout_at_rest(value, mesh);
  return segment == Phase::forward ? layouts->forward : layouts->backward;
}

ShardingSpec Placement::layout_in_update(ValueIndex value, MeshIndex mesh) const {
  const std::vector<NodeIndex>& users = uses_.users_of(value);
  const auto last = std::find_if(users.rbegin(), users.rend(), [&](NodeIndex n) {
    return node_of(graph(), n).phase == Phase::update && mesh_of_node(n) == mesh;
  });
  if (last == users.rend()) return layout_at_rest(value, mesh);
  const std::vector<ValueIndex>& operands = node_of(graph(), *last).operands;
  return node_layout(*last).operands[std::ranges::find(operands, value) - operands.begin()];
}

}  // namespace alpa
