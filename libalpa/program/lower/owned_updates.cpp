// Updates that devices share out by rows of parameters (GradientSync::owners).
#include "libalpa/plan/owned_updates.h"

#include <algorithm>

#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {

std::vector<MeshValues::Part> MeshLowering::parts_of(const std::vector<OwnedRows>& owners, int axis) {
  std::vector<MeshValues::Part> parts;
  std::int64_t first = 0;
  for (const OwnedRows& part : owners) {
    parts.push_back({first, part.rows, {axis, part.owner}});
    first += part.rows;
  }
  return parts;
}

void MeshLowering::find_owned_updates() {
  if (!plan_.has_owners() || plan_.has_states_at_servers()) return;
  for (const OwnableUpdate& ownable : ownable_updates(placement_, mesh_, values_.conversions())) {
    const GradientSync sync = plan_.sync_of(ownable.sums.back());
    if (sync.owners.empty()) continue;
    OwnedUpdate& owned = owned_[ownable.update];
    owned.axis = ownable.axis;
    owned.bucket = sync.bucket;
    owned.parts = parts_of(sync.owners, ownable.axis);
    for (const ValueIndex sum : ownable.sums) in_parts_[sum].of = &owned;
    for (const ValueIndex result : node_of(graph_, ownable.update).results)
      if (const StateIndex state = uses_.state_after_value(result);
          is_of_update_alone(uses_, graph_.states[state]))
        values_.state_in_parts(state, owned.parts);
  }
}

/// By one collective.
void MeshLowering::reduce_to_owners(const std::vector<ValueIndex>& sums) {
  OwnerCollective collective;
  collective.reduces = true;
  for (const ValueIndex sum : sums) {
    auto& [owned, at] = in_parts_.at(sum);
    const BufferIndex whole = values_.fetch_resting(sum);
    at = values_.views_of_rows(whole, owned->parts);
    collective.axis = owned->axis;
    collective.everywhere.push_back(whole);
    collective.owned.insert(collective.owned.end(), at.begin(), at.end());
  }
  values_.emit(std::move(collective));
}

bool MeshLowering::is_in_parts(NodeIndex n) const {
  return std::ranges::any_of(node_of(graph_, n).operands,
                             [&](ValueIndex operand) { return in_parts_.contains(operand); });
}

/// A node of the update, once for each part at its owner.
void MeshLowering::emit_in_parts(NodeIndex n) {
  const Node& node = node_of(graph_, n);
  const NodeLayout& layout = placement_.node_layout(n);
  OwnedUpdate* owned = nullptr;
  for (const ValueIndex operand : node.operands)
    if (const auto part = in_parts_.find(operand); part != in_parts_.end()) owned = part->second.of;
  std::vector<std::vector<BufferIndex>> operands(node.operands.size()), results;  // [operand, result][part]
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const ValueIndex operand = node.operands[i];
    const StateIndex state = uses_.state_at[operand];
    if (const auto part = in_parts_.find(operand); part != in_parts_.end()) {
      operands[i] = part->second.at;
    } else if (state < 0) {
      operands[i].assign(owned->parts.size(), values_.obtain(operand, layout.operands[i]));
    } else if (operands[i] = values_.program().state_parts[state]; operands[i].empty()) {
      const BufferIndex whole = values_.fetch_resting(operand);
      operands[i] = values_.views_of_rows(whole, owned->parts);
      OwnerCollective& handed = handed_out_[owned->bucket];
      handed.everywhere.push_back(whole);
      handed.owned.insert(handed.owned.end(), operands[i].begin(), operands[i].end());
    }
  }
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    const int over = node.op->overwritten(r);
    results.push_back(over >= 0 ? operands[static_cast<std::size_t>(over)]
                                : values_.buffers_of_rows(node.results[r], layout.results[r],
                                                          Residence::segment, owned->parts));
    if (over < 0) in_parts_[node.results[r]] = {owned, results[r]};
  }
  for (std::size_t part = 0; part < owned->parts.size(); ++part) {
    Compute compute{n, node.op, layout.local_attributes, {}, {}, {}, Accumulate::overwrite};
    std::vector<TensorType> types;
    for (const std::vector<BufferIndex>& of : operands) {
      compute.operands.push_back(of[part]);
      types.push_back(values_.buffer(of[part]).tile);
    }
    for (const std::vector<BufferIndex>& of : results) compute.results.push_back(of[part]);
    compute.workspace = workspace(*node.op, {types, layout.local_attributes});
    values_.emit(std::move(compute));
  }
  if (owned_.contains(n) && !serves_) hand_out(n);
}

/// What has become of the parameter, to all, once that of its whole bucket is made.
void MeshLowering::hand_out(NodeIndex update) {
  OwnedUpdate& owned = owned_.at(update);
  owned.is_made = true;
  const auto is_waited_for = [&](const auto& other) {
    return owned.bucket >= 0 && other.second.bucket == owned.bucket && !other.second.is_made;
  };
  if (std::ranges::any_of(owned_, is_waited_for)) return;
  OwnerCollective& handed = handed_out_[owned.bucket];
  handed.reduces = false;
  handed.axis = owned.axis;
  values_.emit(std::move(handed));
  handed_out_.erase(owned.bucket);
}

}  // namespace alpa
