#include "libalpa/program/lower/mesh_lowering.h"

#include <algorithm>

#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/plan/update_timing.h"

namespace alpa {
namespace {

bool is_input(const Graph& graph, ValueIndex value) {
  return value_of(graph, value).kind == ValueKind::input;
}

}  // namespace

MeshLowering::MeshLowering(const Placement& placement, MeshIndex mesh, Purpose purpose, DeviceKind device,
                           const std::vector<StageRun>& order, const std::vector<StageTransfer>& transfers,
                           const std::vector<std::int64_t>& message_slots)
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
      values_(placement, mesh, transfers) {}

MeshProgram MeshLowering::run() {
  find_kept_values();
  // All states first, in the graph's order: the arena begins with them, whatever uses them when.
  for (const StateIndex s : graph_.states.indices()) {
    const ValueIndex value = graph_.states[s].value;
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
      for (const ValueIndex v : placement_.semantics(stage).saved_values()) values_.keep(v);
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
  values_.begin_segment(stage, SegmentKind::forward);
  receive_values_made_in(Phase::forward);
  for (const ValueIndex v : values_.kept())
    if (is_input(graph_, v) && first_stage_with(v, Phase::forward) == stage) values_.fetch_resting(v);
  for (const NodeIndex n : placement_.semantics(stage).order(Phase::forward, {})) emit_node(n);
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

void MeshLowering::lower_update() {
  values_.begin_segment(StageIndex(), SegmentKind::update);
  const bool trains = purpose_ == Purpose::train;
  const bool has_stand_in = trains && !updates_wait_;
  const std::int64_t scalars = 1 + std::ssize(graph_.metrics) + (trains ? 1 : 0) + (has_stand_in ? 1 : 0);
  const BufferIndex sums =
      values_.new_buffer("sums", {}, replicated_spec(1), {DType::f32, {scalars}}, Residence::step);
  std::int64_t offset = 0;
  const auto scalar = [&](const std::string& name) {
    const BufferIndex view = values_.new_view(name, sums, offset, {DType::f32, {}});
    offset += values_.buffer(view).bytes;
    return view;
  };
  values_.program().loss = scalar("loss");
  for (const Metric& metric : graph_.metrics) values_.program().metrics.push_back(scalar(metric.name));
  if (trains) {
    values_.program().gradient_square_sum = scalar("squared gradient norm");
    // Updates that do not wait for the norm go by one that changes nothing.
    const BufferIndex norm =
        has_stand_in ? scalar("no gradient norm") : values_.program().gradient_square_sum;
    if (has_stand_in) values_.emit(Zero{norm});
    values_.provide(graph_.gradient_square_sum, replicated_spec(0), norm);
    for (const StageTransfer& transfer : transfers_)
      if (const NodeIndex maker = value_of(graph_, transfer.value).producer; maker >= 0)  // a state has none
        if (node_of(graph_, maker).op->sums_micro_batches) send_to_other_meshes(transfer.value);
    receive_values_made_in(Phase::update);
    sum_gradients();
  }
  emit_sum({graph_.loss}, values_.program().loss);
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m)
    emit_sum(graph_.metrics[m].values, values_.program().metrics[m]);
  if (purpose_ == Purpose::evaluate) {
    emit_global_sum();
    return;
  }
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::update) continue;
    if (!node.op->reduces_globally) {
      if (here(n)) emit_node(n);
      continue;
    }
    emit_gradient_norm(node);
    if (updates_wait_) emit_global_sum();
    if (corrects_updates_) copy_states();
  }
  send_state_copies();
  if (!updates_wait_) emit_global_sum();
  if (corrects_updates_) correct_update();
}

/// As they are before the update.
void MeshLowering::copy_states() {
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::update || !here(n)) continue;
    for (const ValueIndex result : node.results) {
      const StateIndex state = uses_.state_after_value(result);
      if (state < 0) continue;
      const Buffer& like = values_.buffer(values_.state_buffer(state));
      const BufferIndex copy =
          values_.new_buffer("before the update", like.value, like.layout, like.tile, Residence::segment);
      values_.emit(Copy{values_.state_buffer(state), copy});
      copies_[state] = copy;
    }
  }
}

/// Where the norm turns out to bind: the update once more, of the same states and gradients.
void MeshLowering::correct_update() {
  values_.emit_when(When::norm_binds);
  values_.provide(graph_.gradient_square_sum, replicated_spec(0), values_.program().gradient_square_sum);
  for (const auto& [state, copy] : copies_) {
    values_.emit(Copy{copy, values_.state_buffer(state)});
    values_.forget(graph_.states[state].value);
  }
  std::vector<NodeIndex> updates;  // what goes by the norm comes after it
  for (const NodeIndex n : graph_.nodes.indices())
    if (n > uses_.norm && node_of(graph_, n).phase == Phase::update && here(n)) updates.push_back(n);
  for (const NodeIndex n : updates)
    for (const ValueIndex operand : node_of(graph_, n).operands) values_.forget_conversions(operand);
  for (const NodeIndex n : updates)
    for (const ValueIndex result : node_of(graph_, n).results) values_.forget(result);
  for (const NodeIndex n : updates) emit_node(n);
  send_state_copies();
}

/// Over devices, where it takes no memory, in the order in which the backward is done with them: then none
/// waits for another that comes later.
void MeshLowering::sum_gradients() {
  const std::vector<ReducedGradient> sums = reduced_gradients(placement_, mesh_, values_.conversions());
  std::map<int, std::vector<ValueIndex>> buckets;
  for (const ReducedGradient& each : sums)
    if (const int bucket = plan_.bucket_of(each.sum); bucket >= 0) buckets[bucket].push_back(each.sum);
  for (const ReducedGradient& each : sums) {
    const int bucket = plan_.bucket_of(each.sum);
    if (bucket < 0)
      values_.fetch_for_segment(each.sum);
    else if (buckets.at(bucket).back() == each.sum)
      values_.sum_together(buckets.at(bucket));
  }
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
  if (node.op->overwrites[result] >= 0) return operands[node.op->overwrites[result]];
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

/// A node's operator over one tile, each element of the whole counted once over all copies.
void MeshLowering::add_up(NodeIndex node, BufferIndex tile, const ShardingSpec& layout, BufferIndex into,
                          bool first) {
  const OpDef& op = *node_of(graph_, node).op;
  const Attributes attributes{{"weight", 1.0 / replica_count(layout, shape())}};
  const std::vector<TensorType> operands{values_.buffer(tile).tile};
  const BufferIndex own = workspace(op, {operands, attributes});
  values_.emit(
      Compute{node, &op, attributes, {tile}, {into}, own, first ? Accumulate::overwrite : Accumulate::add});
}

/// Each rank adds the squares of its tiles, divided by the number of copies, so that one sum over all ranks
/// counts every element once.
void MeshLowering::emit_gradient_norm(const Node& node) {
  bool first = true;
  for (const ValueIndex gradient : node.operands) {
    if (placement_.mesh_of_value(gradient) != mesh_) continue;
    const ShardingSpec layout = placement_.layout_in_update(gradient, mesh_);
    add_up(graph_.nodes.index_of(node), values_.obtain(gradient, layout), layout,
           values_.program().gradient_square_sum, first);
    first = false;
  }
  if (first) values_.emit(Zero{values_.program().gradient_square_sum});
}

void MeshLowering::emit_global_sum() {
  const MeshProgram& mesh = values_.program();
  GlobalSum sum{{mesh.loss}, mesh.whole(mesh.loss)};
  sum.scalars.insert(sum.scalars.end(), mesh.metrics.begin(), mesh.metrics.end());
  if (mesh.gradient_square_sum >= 0) sum.scalars.push_back(mesh.gradient_square_sum);
  values_.emit(std::move(sum));
}

/// Those of the values that are made here, each element of them counted once.
void MeshLowering::emit_sum(const std::vector<ValueIndex>& values, BufferIndex into) {
  bool first = true;
  for (const ValueIndex value : values) {
    const NodeIndex producer = value_of(graph_, value).producer;
    if (!here(producer)) continue;
    add_up(producer, values_.fetch_resting(value), values_.resting_layout(value), into, first);
    first = false;
  }
  if (first) values_.emit(Zero{into});
}

}  // namespace alpa
