#include "libalpa/program/stage_lowering.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <tuple>

#include "libalpa/cluster/device_facts.h"

namespace alpa {
namespace {

bool is_input(const Graph& graph, int value) { return value_of(graph, value).kind == ValueKind::input; }

}  // namespace

StageLowering::StageLowering(const Graph& graph, const Plan& plan, int stage, Purpose purpose,
                             const std::string& device, const std::vector<StageRun>& order,
                             const std::vector<std::int64_t>& message_slots)
    : graph_(graph),
      plan_(plan),
      stage_(stage),
      purpose_(purpose),
      has_workspaces_(!is_gpu(device)),
      order_(order),
      message_slots_(message_slots),
      of_weights_(leads_to_weights_alone(graph)),
      values_(graph, plan, stage) {}

MeshProgram StageLowering::run() {
  find_consumers();
  if (purpose_ == Purpose::train)
    for (const int v : saved_values(plan_, graph_, stage_)) values_.keep_for_backward(v);
  // All states first, in the graph's order: the arena begins with them, whatever uses them when.
  for (int s = 0; s < static_cast<int>(graph_.states.size()); ++s) {
    const int value = graph_.states[static_cast<std::size_t>(s)].value;
    const bool home = stage_of_value(plan_, graph_, value) == stage_;
    if (home || !consumers_[static_cast<std::size_t>(value)].empty()) values_.state_buffer(s);
  }
  lower_forward();
  if (has(SegmentKind::backward)) lower_backward(SegmentKind::backward);
  if (has(SegmentKind::backward_inputs)) {
    keep_for_weights();
    lower_backward(SegmentKind::backward_inputs);
    lower_backward(SegmentKind::backward_weights);
  }
  lower_update();
  return values_.take();
}

bool StageLowering::has(SegmentKind kind) const {
  return std::ranges::any_of(order_, [&](const StageRun& run) { return run.kind == kind; });
}

bool StageLowering::here(int node) const {
  const int layer = node_of(graph_, node).layer;
  return layer >= stage_plan().first_layer && layer < stage_plan().end_layer;
}

void StageLowering::find_consumers() {
  consumers_.resize(graph_.values.size());
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
    if (here(n))
      for (const int operand : node_of(graph_, n).operands)
        consumers_[static_cast<std::size_t>(operand)].push_back(n);
}

std::vector<int> StageLowering::nodes_of(Phase phase) const {
  std::vector<int> nodes;
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
    if (here(n) && node_of(graph_, n).phase == phase) nodes.push_back(n);
  return nodes;
}

/// What the second part of a split backward needs and its first part has, or makes again.
void StageLowering::keep_for_weights() {
  for (const int n : nodes_of(Phase::backward))
    if (of_weights_[static_cast<std::size_t>(n)])
      for (const int operand : node_of(graph_, n).operands) {
        const int maker = value_of(graph_, operand).producer;
        if (maker >= 0 && !of_weights_[static_cast<std::size_t>(maker)]) values_.keep_for_weights(operand);
      }
}

/// What a layer's backward needs of its forward, when nothing inside the layer was kept.
std::vector<int> StageLowering::recomputed_nodes(int layer) const {
  std::set<int> wanted;
  for (const int n : nodes_of(Phase::backward))
    if (node_of(graph_, n).layer == layer)
      wanted.insert(node_of(graph_, n).operands.begin(), node_of(graph_, n).operands.end());
  std::vector<int> nodes;
  for (int n = static_cast<int>(graph_.nodes.size()) - 1; n >= 0; --n) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::forward || node.layer != layer) continue;
    bool needed = false;
    for (const int result : node.results)
      needed = needed || (wanted.contains(result) && !values_.is_kept_for_backward(result));
    if (!needed) continue;
    nodes.push_back(n);
    wanted.insert(node.operands.begin(), node.operands.end());
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

void StageLowering::lower_forward() {
  values_.begin_segment(SegmentKind::forward);
  receive_values_made_in(Phase::forward);
  for (const int v : values_.kept_for_backward())
    if (is_input(graph_, v)) values_.fetch_resting(v);
  for (const int n : nodes_of(Phase::forward)) emit_node(n);
}

void StageLowering::lower_backward(SegmentKind kind) {
  values_.begin_segment(kind);
  const bool begins = kind != SegmentKind::backward_weights;
  if (begins) {
    skipped_.clear();
    receive_values_made_in(Phase::backward);
  }
  for (int layer = stage_plan().end_layer - 1; layer >= stage_plan().first_layer; --layer) {
    if (stage_plan().rematerialize && begins)
      for (const int n : recomputed_nodes(layer)) emit_node(n);
    for (const int n : nodes_of(Phase::backward))
      if (node_of(graph_, n).layer == layer &&
          (kind == SegmentKind::backward || of_weights_[static_cast<std::size_t>(n)] != begins))
        emit_node(n);
  }
}

void StageLowering::lower_update() {
  values_.begin_segment(SegmentKind::update);
  const auto scalar = [&](const std::string& name) {
    return values_.new_buffer(name, -1, replicated_spec(0), {DType::f32, {}}, Residence::step);
  };
  values_.program().loss = scalar("loss");
  for (const Metric& metric : graph_.metrics) values_.program().metrics.push_back(scalar(metric.name));
  if (purpose_ == Purpose::train) {
    values_.program().gradient_square_sum = scalar("squared gradient norm");
    values_.provide(graph_.gradient_square_sum, replicated_spec(0), values_.program().gradient_square_sum);
    for (const Crossing& crossing : plan_.crossings)
      if (const int maker = value_of(graph_, crossing.value).producer; maker >= 0)  // a state has none
        if (node_of(graph_, maker).op->sums_micro_batches) send_if_crossing(crossing.value);
    receive_values_made_in(Phase::update);
  }
  emit_sum({graph_.loss}, values_.program().loss);
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m)
    emit_sum(graph_.metrics[m].values, values_.program().metrics[m]);
  if (purpose_ == Purpose::evaluate) {
    emit_global_sum({values_.program().loss});
    return;
  }
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::update) continue;
    if (node.op->reduces_globally)
      emit_gradient_norm(node);
    else if (here(n))
      emit_node(n);
  }
  send_state_copies();
}

/// The accumulate node that can be done by the kernel of the gradient itself, or -1.
int StageLowering::fused_accumulator(const Node& node, const NodeLayout& layout) const {
  if (!node.op->accumulates || node.phase != Phase::backward || node.op->sums_micro_batches) return -1;
  const int value = node.results[0];
  const auto& users = consumers_[static_cast<std::size_t>(value)];
  if (users.size() != 1 || !node_of(graph_, users[0]).op->sums_micro_batches) return -1;
  const int sum = node_of(graph_, users[0]).results[0];
  const bool same = layout.results[0] == plan_.value_layout[static_cast<std::size_t>(value)] &&
                    layout.results[0] == plan_.value_layout[static_cast<std::size_t>(sum)];
  return same ? users[0] : -1;
}

int StageLowering::result_buffer(const Node& node, const NodeLayout& layout, std::size_t result,
                                 const std::vector<int>& operands) {
  if (node.op->overwrites[result] >= 0)
    return operands[static_cast<std::size_t>(node.op->overwrites[result])];
  const int value = node.results[result];
  const TensorType& tile = layout.local_results[result];
  if (layout.results[result] == values_.resting_layout(value))
    return values_.resting_buffer(value, tile.dtype);
  return values_.new_buffer(value_of(graph_, value).name, value, layout.results[result], tile,
                            Residence::segment);
}

void StageLowering::settle_result(int value, int buffer, const ShardingSpec& made) {
  values_.provide(value, made, buffer);
  const ShardingSpec resting = values_.resting_layout(value);
  const bool of_state = state_with_next(graph_, value) >= 0;
  const bool leaves = std::any_of(plan_.crossings.begin(), plan_.crossings.end(),
                                  [&](const Crossing& c) { return c.value == value; });
  const bool used = of_state || leaves || values_.is_kept_for_backward(value) ||
                    is_summed_over_step(graph_, value) ||
                    !consumers_[static_cast<std::size_t>(value)].empty();
  if (used && made != resting)
    values_.converted(value, buffer, made, resting,
                      values_.resting_buffer(value, values_.buffer(buffer).tile.dtype));
  if (purpose_ == Purpose::evaluate && values_.segment() != SegmentKind::forward) return;
  // Recomputed values are not sent again, nor are sums of gradients before the update.
  const Node& maker = node_of(graph_, value_of(graph_, value).producer);
  const bool again = values_.segment() != SegmentKind::forward && maker.phase == Phase::forward;
  if (!again && !maker.op->sums_micro_batches) send_if_crossing(value);
}

void StageLowering::emit_node(int index) {
  if (skipped_.contains(index)) return;
  const Node& node = node_of(graph_, index);
  const std::vector<TensorType> whole = operand_types(graph_, node);
  const NodeLayout layout =
      layout_of(*node.op, {whole, node.attributes}, plan_.node_strategy[static_cast<std::size_t>(index)],
                stage_plan().mesh.shape);
  Compute compute{index, node.op, layout.local_attributes, {}, {}, -1, Accumulate::overwrite};
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    compute.operands.push_back(values_.obtain(node.operands[i], layout.operands[i]));
  if (purpose_ == Purpose::evaluate && node.op->only_in_training) {
    settle_result(node.results[0], compute.operands[0], layout.results[0]);
    return;
  }
  const int accumulator = fused_accumulator(node, layout);
  if (node.op->sums_micro_batches || accumulator >= 0 || is_summed_over_step(graph_, node.results[0]))
    compute.accumulate = Accumulate::add_after_first_micro_batch;
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    const int sum = r == 0 && accumulator >= 0 ? node_of(graph_, accumulator).results[0] : -1;
    compute.results.push_back(sum >= 0 ? values_.resting_buffer(sum, DType::f32)
                                       : result_buffer(node, layout, r, compute.operands));
  }
  if (has_workspaces_)
    compute.workspace = values_.scratch("workspace", workspace_of(*node.op, layout.local_call()));
  const std::vector<int> results = compute.results;
  emit_rounds(std::move(compute), layout);
  if (accumulator >= 0) skipped_.insert(accumulator);
  for (std::size_t r = accumulator >= 0 ? 1 : 0; r < node.results.size(); ++r)
    settle_result(node.results[r], results[r], layout.results[r]);
  // A gradient is summed as soon as it is there, so that its buffer is free again.
  for (const int result : node.results)
    for (const int user : consumers_[static_cast<std::size_t>(result)])
      if (node_of(graph_, user).op->sums_micro_batches && !skipped_.contains(user)) {
        emit_node(user);
        skipped_.insert(user);
      }
}

/// The kernel, once for each block where blocks go round.
void StageLowering::emit_rounds(Compute compute, const NodeLayout& layout) {
  const Ring& ring = layout.ring;
  const std::vector<int> own_operands = compute.operands, own_results = compute.results;
  for (const RingRound& round : ring.rounds()) {
    Shift shift{ring.axis, {}, {}};
    // The buffers of this round take the place of those of the round before, and perhaps their contents.
    const auto turn = [&](const std::vector<int>& which, const std::vector<int>& own, bool arrive,
                          std::vector<int>& now) {
      for (const int i : which) {
        const auto at = static_cast<std::size_t>(i);
        const int next =
            round.passed == 0 ? own[at] : values_.visiting_buffer(own[at], round.passed, ring.axis);
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

/// Each rank adds the squares of its tiles, divided by the number of copies, so that one sum over all ranks
/// counts every element once.
void StageLowering::emit_gradient_norm(const Node& node) {
  bool first = true;
  for (const int gradient : node.operands) {
    if (stage_of_value(plan_, graph_, gradient) != stage_) continue;
    // The layout its update wants anyway.
    ShardingSpec layout = values_.resting_layout(gradient);
    for (const int user : consumers_[static_cast<std::size_t>(gradient)]) {
      const Node& update = node_of(graph_, user);
      if (update.op->reduces_globally) continue;
      const std::vector<TensorType> whole = operand_types(graph_, update);
      const NodeLayout wanted =
          layout_of(*update.op, {whole, update.attributes},
                    plan_.node_strategy[static_cast<std::size_t>(user)], stage_plan().mesh.shape);
      for (std::size_t i = 0; i < update.operands.size(); ++i)
        if (update.operands[i] == gradient) layout = wanted.operands[i];
    }
    const double weight = 1.0 / replica_count(layout, stage_plan().mesh.shape);
    values_.emit(Compute{static_cast<int>(&node - graph_.nodes.data()),
                         node.op,
                         {{"weight", weight}},
                         {values_.obtain(gradient, layout)},
                         {values_.program().gradient_square_sum},
                         -1,
                         first ? Accumulate::overwrite : Accumulate::add});
    first = false;
  }
  if (first) values_.emit(Zero{values_.program().gradient_square_sum});
  emit_global_sum({values_.program().gradient_square_sum, values_.program().loss});
}

void StageLowering::emit_global_sum(std::vector<int> scalars) {
  scalars.insert(scalars.end(), values_.program().metrics.begin(), values_.program().metrics.end());
  GlobalSum sum;
  sum.packed = values_.scratch("sums", 4 * std::ssize(scalars));
  sum.scalars = std::move(scalars);
  values_.emit(std::move(sum));
}

/// Those of the values that are made here, each element of them counted once.
void StageLowering::emit_sum(const std::vector<int>& values, int into) {
  bool first = true;
  for (const int value : values) {
    const int producer = value_of(graph_, value).producer;
    if (!here(producer)) continue;
    const int summed = values_.fetch_resting(value);
    const double weight = 1.0 / replica_count(values_.resting_layout(value), stage_plan().mesh.shape);
    values_.emit(Compute{producer,
                         node_of(graph_, producer).op,
                         {{"weight", weight}},
                         {summed},
                         {into},
                         -1,
                         first ? Accumulate::overwrite : Accumulate::add});
    first = false;
  }
  if (first) values_.emit(Zero{into});
}

}  // namespace alpa
