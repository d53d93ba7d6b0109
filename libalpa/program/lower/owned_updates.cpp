// Updates that devices share out by rows of parameters (GradientSync::owners).
#include "libalpa/plan/owned_updates.h"

#include <algorithm>

#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {

void MeshLowering::find_owned_updates() {
  for (const ReducedGradient& each : reduced_gradients(placement_, mesh_, values_.conversions())) {
    const GradientSync sync = plan_.sync_of(each.sum);
    if (sync.owners.empty()) continue;
    const OwnableUpdate ownable = *ownable_update(placement_, mesh_, each);  // as check_plan has seen
    OwnedUpdate& owned = owned_[ownable.update];
    owned.sum = each.sum;
    owned.axis = ownable.axis;
    std::int64_t first = 0;
    for (const OwnedRows& part : sync.owners) {
      owned.parts.push_back({first, part.rows, {ownable.axis, part.owner}});
      first += part.rows;
    }
    for (const ValueIndex result : node_of(graph_, ownable.update).results)
      if (const StateIndex state = uses_.state_after_value(result);
          is_of_update_alone(uses_, graph_.states[state]))
        values_.state_in_parts(state, owned.parts);
  }
}

MeshLowering::OwnedUpdate* MeshLowering::owned_update_of(ValueIndex sum) {
  for (auto& [node, owned] : owned_)
    if (owned.sum == sum) return &owned;
  return nullptr;
}

/// By one collective.
void MeshLowering::reduce_to_owners(const std::vector<ValueIndex>& sums) {
  OwnerCollective collective;
  collective.reduces = true;
  for (const ValueIndex sum : sums) {
    OwnedUpdate& owned = *owned_update_of(sum);
    const BufferIndex whole = values_.fetch_resting(sum);
    owned.sums = values_.views_of_rows(whole, owned.parts);
    collective.axis = owned.axis;
    collective.everywhere.push_back(whole);
    collective.owned.insert(collective.owned.end(), owned.sums.begin(), owned.sums.end());
  }
  values_.emit(std::move(collective));
}

/// Each of its parts, and what has become of the parameter to all once that of its whole bucket is made.
void MeshLowering::emit_owned_update(NodeIndex n) {
  const Node& node = node_of(graph_, n);
  const NodeLayout& layout = placement_.node_layout(n);
  OwnedUpdate& owned = owned_.at(n);
  const int bucket = plan_.bucket_of(owned.sum);
  OwnerCollective& handed = handed_out_[bucket];
  handed.reduces = false;
  handed.axis = owned.axis;
  std::vector<std::vector<BufferIndex>> operands(node.operands.size());  // [operand][part]
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const ValueIndex operand = node.operands[i];
    const StateIndex state = uses_.state_at[operand];
    if (operand == owned.sum) {
      operands[i] = owned.sums;
    } else if (state < 0) {
      operands[i].assign(owned.parts.size(), values_.obtain(operand, layout.operands[i]));
    } else if (operands[i] = values_.program().state_parts[state]; operands[i].empty()) {
      const BufferIndex whole = values_.fetch_resting(operand);
      operands[i] = values_.views_of_rows(whole, owned.parts);
      handed.everywhere.push_back(whole);
      handed.owned.insert(handed.owned.end(), operands[i].begin(), operands[i].end());
    }
  }
  for (std::size_t part = 0; part < owned.parts.size(); ++part) {
    Compute compute{n, node.op, layout.local_attributes, {}, {}, {}, Accumulate::overwrite};
    std::vector<TensorType> types;
    for (const std::vector<BufferIndex>& of : operands) {
      compute.operands.push_back(of[part]);
      types.push_back(values_.buffer(of[part]).tile);
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      compute.results.push_back(compute.operands[static_cast<std::size_t>(node.op->overwrites[r])]);
    compute.workspace = workspace(*node.op, {types, layout.local_attributes});
    values_.emit(std::move(compute));
  }
  owned.is_made = true;
  const auto is_waited_for = [&](const auto& other) {
    return bucket >= 0 && plan_.bucket_of(other.second.sum) == bucket && !other.second.is_made;
  };
  if (std::ranges::any_of(owned_, is_waited_for)) return;
  values_.emit(std::move(handed));
  handed_out_.erase(bucket);
}

/// Each row counts once, at its owner.
void MeshLowering::add_up_owned(NodeIndex node, ValueIndex gradient, const ShardingSpec& layout,
                                BufferIndex into) {
  const OwnedUpdate& owned = *owned_update_of(gradient);
  for (const BufferIndex sum : owned.sums)
    add_up(node, sum, replica_count(layout, shape()) / shape()[static_cast<std::size_t>(owned.axis)], into,
           false);
}

}  // namespace alpa
