#include "libalpa/program/lower/mesh_lowering.h"

#include <algorithm>

#include "libalpa/plan/update_timing.h"

namespace alpa {
namespace {

bool is_input(const Graph& graph, ValueIndex value) {
  return value_of(graph, value).kind == ValueKind::input;
}

}  // namespace

MeshLowering::MeshLowering(const Placement& placement, MeshIndex mesh, Purpose purpose, DeviceKind device,
                           const std::vector<StageRun>& order, const std::vector<StageTransfer>& transfers,
                           const std::vector<std::int64_t>& message_slots, bool splits_early)
    : placement_(placement),
      uses_(placement.uses()),
      graph_(placement.graph()),
      plan_(placement.plan()),
      mesh_(mesh),
      stages_(stages_of_meshes(plan_)[mesh]),
      purpose_(purpose),
      device_(device),
      order_(order),
      transfers_(transfers),
      message_slots_(message_slots),
      of_weights_(leads_to_weights_alone(graph_)),
      updates_wait_(updates_wait(uses_, plan_.updates)),
      corrects_updates_(purpose == Purpose::train && corrects_updates(uses_, plan_.updates)),
      defers_updates_(purpose == Purpose::train && defers_updates(uses_, plan_)),
      splits_early_(splits_early || defers_updates_),
      pushes_(purpose_ == Purpose::train && plan_.has_states_at_servers()),
      values_(placement, mesh, transfers) {}

MeshProgram MeshLowering::run() {
  find_kept_values();
  if (pushes_) find_updates_at_servers();
  find_owned_updates();
  // All states first, in the graph's order: the arena begins with them, whatever uses them when.
  for (const StateIndex s : graph_.states.indices()) {
    const ValueIndex value = graph_.states[s].value;
    if (!values_.program().state_parts[s].empty()) continue;
    if (plan_.has_states_at_servers() && is_of_update_alone(uses_, graph_.states[s])) continue;
    if (placement_.mesh_of_value(value) == mesh_ || is_used(value)) values_.state_buffer(s);
  }
  for (const StageIndex stage : stages_) lower_forward(stage);
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    if (has(*stage, SegmentKind::backward)) lower_backward(*stage, SegmentKind::backward);
    if (!has(*stage, SegmentKind::backward_inputs)) continue;
    keep_for_weights(*stage);
    lower_backward(*stage, SegmentKind::backward_inputs);
    lower_backward(*stage, SegmentKind::backward_weights);
  }
  lower_update();
  return values_.take();
}

bool MeshLowering::has(StageIndex stage, SegmentKind kind) const {
  return std::ranges::any_of(order_,
                             [&](const StageRun& run) { return run.stage == stage && run.kind == kind; });
}

bool MeshLowering::is_used(ValueIndex value) const {
  return std::ranges::any_of(uses_.users_of(value), [&](NodeIndex user) { return here(user); });
}

/// The stage of this mesh in whose segment of that phase a value is made, received or loaded.
StageIndex MeshLowering::first_stage_with(ValueIndex value, Phase phase) const {
  if (placement_.mesh_of_value(value) == mesh_) return placement_.stage_of_value(value);
  for (std::size_t t = 0; t < transfers_.size(); ++t)
    if (transfers_[t].value == value && plan_.transfers[t].to_mesh == mesh_) return transfers_[t].to_stage;
  StageIndex first;  // an input
  for (const NodeIndex user : uses_.users_of(value))
    if (const StageIndex stage = placement_.stage_of_node(user);
        here(user) && node_of(graph_, user).phase == phase && (first < 0 || stage < first))
      first = stage;
  return first;
}

/// What the backward of a stage takes of its forward, and what stages of one mesh take of each other.
void MeshLowering::find_kept_values() {
  if (purpose_ == Purpose::train)
    for (const StageIndex stage : stages_)
      for (const ValueIndex v : placement_.semantics(stage).saved_values()) {
        values_.keep(v);
        if (placement_.semantics(stage).is_offloaded(v)) values_.keep_on_host(v);
      }
  if (stages_.size() == 1) return;
  for (const ValueIndex v : graph_.values.indices()) {
    const Value& value = value_of(graph_, v);
    if (value.kind == ValueKind::state) continue;
    const Phase made = value.producer < 0 ? Phase::forward : node_of(graph_, value.producer).phase;
    if (made == Phase::update) continue;
    const StageIndex first = first_stage_with(v, made);
    for (const NodeIndex user : uses_.users_of(v)) {
      if (!here(user)) continue;
      const Phase phase = node_of(graph_, user).phase;
      if (phase == Phase::update || (phase == Phase::backward && purpose_ != Purpose::train)) continue;
      if (first >= 0 && placement_.stage_of_node(user) != first && !uses_.summed_over_step[v])
        values_.keep(v);
    }
  }
}

/// What the second part of a split backward needs and its first part has, or makes again.
void MeshLowering::keep_for_weights(StageIndex stage) {
  for (const NodeIndex n : graph_.nodes.indices()) {
    if (placement_.stage_of_node(n) != stage || !of_weights_[n]) continue;
    for (const ValueIndex operand : node_of(graph_, n).operands) {
      const NodeIndex maker = value_of(graph_, operand).producer;
      if (maker >= 0 && !of_weights_[maker]) values_.keep_for_weights(operand);
    }
  }
}

void MeshLowering::lower_forward(StageIndex stage) {
  const std::vector<NodeIndex> nodes = placement_.semantics(stage).order(Phase::forward, {});
  values_.begin_segment(stage, SegmentKind::forward);
  if (defers_updates_) begin_deferred_update(nodes);
  if (stage == stages_.front()) {
    if (pushes_) take_parameters();
    sum_held_gradients();
  }
  receive_values_made_in(Phase::forward);
  for (const ValueIndex v : values_.kept())
    if (is_input(graph_, v) && first_stage_with(v, Phase::forward) == stage) values_.fetch_resting(v);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (defers_updates_) update_before(i, nodes);
    emit_node(nodes[i]);
  }
  if (defers_updates_) end_deferred_update();
}

void MeshLowering::lower_backward(StageIndex stage, SegmentKind kind) {
  values_.begin_segment(stage, kind);
  const bool begins = kind != SegmentKind::backward_weights;
  if (begins) {
    skipped_.clear();
    receive_values_made_in(Phase::backward);
  }
  Indexed<ValueIndex, bool> kept(graph_.values.size());
  for (const ValueIndex v : values_.kept()) kept[v] = true;
  for (const NodeIndex n : placement_.semantics(stage).order(Phase::backward, kept))
    if (kind == SegmentKind::backward || of_weights_[n] != begins) emit_node(n);
}

/// The accumulate node that can be done by the kernel of the gradient itself, or -1.
NodeIndex MeshLowering::fused_accumulator(const Node& node, const NodeLayout& layout) const {
  if (values_.stage() < 0) return {};
  const NodeIndex accumulator =
      placement_.semantics(values_.stage()).sum_in_kernel(graph_.nodes.index_of(node));
  if (accumulator < 0) return {};
  const ValueIndex sum = node_of(graph_, accumulator).results[0];
  const bool same = layout.results[0] == plan_.value_layout[node.results[0]] &&
                    layout.results[0] == plan_.value_layout[sum];
  return same ? accumulator : NodeIndex();
}

BufferIndex MeshLowering::result_buffer(const Node& node, const NodeLayout& layout, std::size_t result,
                                        const std::vector<BufferIndex>& operands) {
  if (node.op->overwritten(result) >= 0) return operands[node.op->overwritten(result)];
  const ValueIndex value = node.results[result];
  const TensorType& tile = layout.local_results[result];
  if (layout.results[result] == values_.resting_layout(value))
    return values_.resting_buffer(value, tile.dtype);
  return values_.new_buffer(value_of(graph_, value).name, value, layout.results[result], tile,
                            Residence::segment);
}

void MeshLowering::settle_result(ValueIndex value, BufferIndex buffer, const ShardingSpec& made) {
  const ShardingSpec resting = values_.resting_layout(value);
  const bool again = values_.segment() != SegmentKind::forward &&
                     node_of(graph_, value_of(graph_, value).producer).phase == Phase::forward;
  if (again && values_.is_kept(value)) return;  // users start from what was kept
  values_.provide(value, made, buffer);
  const bool leaves = std::ranges::count(transfers_, value, &StageTransfer::value) > 0;
  const bool rests = uses_.state_after_value(value) >= 0 || leaves || values_.is_kept(value) ||
                     uses_.summed_over_step[value];
  if (made == resting)
    values_.provide_resting(value, buffer);
  else if (rests && !again)
    values_.bring_to_rest(value);
  if (made != resting && values_.segment() == SegmentKind::backward_inputs &&
      values_.is_kept_for_weights(value) && !values_.is_kept(value))
    values_.leave_for_weights(value);
  if (purpose_ == Purpose::evaluate && values_.segment() != SegmentKind::forward) return;
  // Recomputed values are not sent again, nor are sums of gradients before the update.
  const Node& maker = node_of(graph_, value_of(graph_, value).producer);
  if (!again && !maker.op->sums_micro_batches) send_to_other_meshes(value);
}

void MeshLowering::emit_node(NodeIndex index) {
  if (skipped_.contains(index)) return;
  const Node& node = node_of(graph_, index);
  const NodeLayout& layout = placement_.node_layout(index);
  Compute compute{index, node.op, layout.local_attributes, {}, {}, {}, Accumulate::overwrite};
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    compute.operands.push_back(values_.obtain(node.operands[i], layout.operands[i]));
  if (purpose_ == Purpose::evaluate && node.op->only_in_training) {
    settle_result(node.results[0], compute.operands[0], layout.results[0]);
    return;
  }
  const NodeIndex accumulator = fused_accumulator(node, layout);
  if (node.op->sums_micro_batches || accumulator >= 0 || uses_.summed_over_step[node.results[0]])
    compute.accumulate = Accumulate::add_after_first_micro_batch;
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    const ValueIndex sum =
        r == 0 && accumulator >= 0 ? node_of(graph_, accumulator).results[0] : ValueIndex();
    compute.results.push_back(sum >= 0 ? values_.resting_buffer(sum, value_of(graph_, sum).type.dtype)
                                       : result_buffer(node, layout, r, compute.operands));
  }
  compute.workspace = workspace(*node.op, layout.local_call());
  const std::vector<BufferIndex> results = compute.results;
  emit_rounds(std::move(compute), layout);
  if (accumulator >= 0) skipped_.insert(accumulator);
  for (std::size_t r = accumulator >= 0 ? 1 : 0; r < node.results.size(); ++r)
    settle_result(node.results[r], results[r], layout.results[r]);
}

/// Memory for the kernel beside operands and results; -1: it wants none.
BufferIndex MeshLowering::workspace(const OpDef& op, const OpCall& call) {
  return values_.scratch("workspace", workspace_of(op, call, device_));
}

/// The kernel, once for each block where blocks go round.
void MeshLowering::emit_rounds(Compute compute, const NodeLayout& layout) {
  const Ring& ring = layout.ring;
  const std::vector<BufferIndex> own_operands = compute.operands, own_results = compute.results;
  for (const RingRound& round : ring.rounds()) {
    Shift shift{ring.axis, {}, {}};
    // The buffers of this round take the place of those of the round before, and perhaps their contents.
    const auto turn = [&](const std::vector<int>& which, const std::vector<BufferIndex>& own, bool arrive,
                          std::vector<BufferIndex>& now) {
      for (const int i : which) {
        const auto at = static_cast<std::size_t>(i);
        const BufferIndex next =
            round.hops == 0 ? own[at] : values_.remote_block_buffer(own[at], round.hops, ring.axis);
        if (arrive) {
          shift.from.push_back(now[at]);
          shift.to.push_back(next);
        }
        now[at] = next;
      }
    };
    turn(ring.operands, own_operands, round.operands_arrive, compute.operands);
    turn(ring.results, own_results, round.results_arrive, compute.results);
    compute.attributes = layout.attributes_in(round);
    if (!shift.from.empty()) values_.emit(std::move(shift));
    values_.emit(compute);
    compute.accumulate = Accumulate::add;
  }
}

}  // namespace alpa
