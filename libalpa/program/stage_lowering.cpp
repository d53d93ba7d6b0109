#include "libalpa/program/stage_lowering.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace alpa {
namespace {

const Node& node_at(const Graph& graph, int node) { return graph.nodes[static_cast<std::size_t>(node)]; }

bool is_input(const Graph& graph, int value) { return value_of(graph, value).kind == ValueKind::input; }
bool is_state(const Graph& graph, int value) { return value_of(graph, value).kind == ValueKind::state; }

int state_with_value(const Graph& graph, int value) {
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    if (graph.states[s].value == value) return static_cast<int>(s);
  return -1;
}

int state_with_next(const Graph& graph, int value) {
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    if (graph.states[s].next == value) return static_cast<int>(s);
  return -1;
}

InputKind input_kind(const Graph& graph, int value) {
  for (const Input& input : graph.inputs)
    if (input.value == value) return input.kind;
  assert(false && "not an input");
  return InputKind::tokens;
}

std::int64_t aligned(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StageLowering::StageLowering(const Graph& graph, const Plan& plan, int stage, Purpose purpose)
    : graph_(graph),
      plan_(plan),
      stage_(stage),
      purpose_(purpose),
      conversions_(plan.cluster, plan.stages[static_cast<std::size_t>(stage)].mesh) {}

StageProgram StageLowering::run() {
  find_consumers();
  if (purpose_ == Purpose::train) find_saved_values();
  program_.state_buffer.assign(graph_.states.size(), -1);
  // All states first, in the graph's order: the arena begins with them, whatever uses them when.
  for (int s = 0; s < static_cast<int>(graph_.states.size()); ++s) {
    const int value = graph_.states[static_cast<std::size_t>(s)].value;
    const bool home = stage_of_value(plan_, graph_, value) == stage_;
    if (home || !consumers_[static_cast<std::size_t>(value)].empty()) state_buffer(s);
  }
  lower_forward();
  if (purpose_ == Purpose::train) lower_backward();
  lower_update();
  return std::move(program_);
}

bool StageLowering::here(int node) const {
  const int layer = node_at(graph_, node).layer;
  return layer >= stage_plan().first_layer && layer < stage_plan().end_layer;
}

ShardingSpec StageLowering::resting_layout(int value) const {
  const int from = stage_of_value(plan_, graph_, value);
  if (from == stage_) return plan_.value_layout[static_cast<std::size_t>(value)];
  for (const Crossing& crossing : plan_.crossings)
    if (crossing.value == value && crossing.to_stage == stage_) return crossing.layout;
  return replicated_spec(value_of(graph_, value).type.shape.size());
}

void StageLowering::find_consumers() {
  consumers_.resize(graph_.values.size());
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
    if (here(n))
      for (const int operand : node_at(graph_, n).operands)
        consumers_[static_cast<std::size_t>(operand)].push_back(n);
}

std::vector<int> StageLowering::nodes_of(Phase phase) const {
  std::vector<int> nodes;
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
    if (here(n) && node_at(graph_, n).phase == phase) nodes.push_back(n);
  return nodes;
}

/// What a layer's backward needs of its forward, when nothing inside the layer was kept.
std::vector<int> StageLowering::recomputed_nodes(int layer) const {
  std::set<int> wanted;
  for (const int n : nodes_of(Phase::backward))
    if (node_at(graph_, n).layer == layer)
      wanted.insert(node_at(graph_, n).operands.begin(), node_at(graph_, n).operands.end());
  std::vector<int> nodes;
  for (int n = static_cast<int>(graph_.nodes.size()) - 1; n >= 0; --n) {
    const Node& node = node_at(graph_, n);
    if (node.phase != Phase::forward || node.layer != layer) continue;
    bool needed = false;
    for (const int result : node.results)
      needed = needed || (wanted.contains(result) && !saved_.contains(result));
    if (!needed) continue;
    nodes.push_back(n);
    wanted.insert(node.operands.begin(), node.operands.end());
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

void StageLowering::find_saved_values() {
  const bool rematerialize = stage_plan().rematerialize;
  for (int v = 0; v < static_cast<int>(graph_.values.size()); ++v) {
    const Value& value = value_of(graph_, v);
    if (value.kind == ValueKind::state) continue;
    const int made_in = value.producer < 0 ? -1 : node_at(graph_, value.producer).layer;
    if (value.producer >= 0 && node_at(graph_, value.producer).phase != Phase::forward) continue;
    bool forward = value.kind == ValueKind::computed, backward = false;
    for (const int n : consumers_[static_cast<std::size_t>(v)]) {
      const Node& node = node_at(graph_, n);
      forward = forward || node.phase == Phase::forward;
      // Under rematerialisation a layer's own values are made again; what enters it is kept.
      if (rematerialize ? node.layer != made_in && node.phase != Phase::update
                        : node.phase == Phase::backward)
        backward = true;
    }
    if (forward && backward) saved_.insert(v);
  }
}

void StageLowering::begin_segment(SegmentKind kind) {
  segment_ = kind;
  available_.clear();
}

void StageLowering::lower_forward() {
  begin_segment(SegmentKind::forward);
  receive_values_made_in(Phase::forward);
  for (const int v : saved_)
    if (is_input(graph_, v)) fetch_resting(v);
  for (const int n : nodes_of(Phase::forward)) emit_node(n);
}

void StageLowering::lower_backward() {
  begin_segment(SegmentKind::backward);
  receive_values_made_in(Phase::backward);
  for (int layer = stage_plan().end_layer - 1; layer >= stage_plan().first_layer; --layer) {
    if (stage_plan().rematerialize)
      for (const int n : recomputed_nodes(layer)) emit_node(n);
    for (const int n : nodes_of(Phase::backward))
      if (node_at(graph_, n).layer == layer) emit_node(n);
  }
}

void StageLowering::lower_update() {
  begin_segment(SegmentKind::update);
  program_.loss = new_buffer("loss", -1, replicated_spec(0), {DType::f32, {}}, Residence::step);
  if (purpose_ == Purpose::train) {
    program_.gradient_square_sum =
        new_buffer("squared gradient norm", -1, replicated_spec(0), {DType::f32, {}}, Residence::step);
    available_[{graph_.gradient_square_sum, replicated_spec(0)}] = program_.gradient_square_sum;
    for (const Crossing& crossing : plan_.crossings)
      if (!is_state(graph_, crossing.value)) {
        const Node& maker = node_at(graph_, value_of(graph_, crossing.value).producer);
        if (maker.op->sums_micro_batches) send_if_crossing(crossing.value);
      }
    receive_values_made_in(Phase::update);
  }
  emit_loss_sum();
  if (purpose_ == Purpose::evaluate) {
    GlobalSum sum;
    sum.scalars = {program_.loss};
    sum.packed = scratch("sums", kAlignment);
    emit(std::move(sum));
    return;
  }
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
    const Node& node = node_at(graph_, n);
    if (node.phase != Phase::update) continue;
    if (node.op->reduces_globally)
      emit_gradient_norm(node);
    else if (here(n))
      emit_node(n);
  }
  send_state_copies();
}

/// Values that another stage makes in `phase`, in the order it makes them (sums of gradients cross in the
/// update).
void StageLowering::receive_values_made_in(Phase phase) {
  std::vector<std::pair<int, int>> arriving;
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    const Crossing& crossing = plan_.crossings[t];
    if (crossing.to_stage != stage_ || is_state(graph_, crossing.value)) continue;
    const Node& maker = node_at(graph_, value_of(graph_, crossing.value).producer);
    const Phase made = maker.op->sums_micro_batches ? Phase::update : maker.phase;
    if (made == phase) arriving.push_back({value_of(graph_, crossing.value).producer, static_cast<int>(t)});
  }
  std::sort(arriving.begin(), arriving.end());
  for (const auto& [producer, t] : arriving) {
    const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(t)];
    const int buffer = resting_buffer(crossing.value, value_of(graph_, crossing.value).type.dtype);
    emit(Receive{t, buffer,
                 scratch("arriving pieces", program_.buffers[static_cast<std::size_t>(buffer)].bytes)});
    available_[{crossing.value, crossing.layout}] = buffer;
  }
}

void StageLowering::send_if_crossing(int value) {
  if (stage_of_value(plan_, graph_, value) != stage_) return;
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    if (plan_.crossings[t].value != value) continue;
    send(static_cast<int>(t), obtain(value, leaving_layout(plan_, value)));
  }
}

/// A state used by several stages is updated at home and copied to the others.
void StageLowering::send_state_copies() {
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    const Crossing& crossing = plan_.crossings[t];
    if (!is_state(graph_, crossing.value)) continue;
    const int buffer =
        program_.state_buffer[static_cast<std::size_t>(state_with_value(graph_, crossing.value))];
    if (stage_of_value(plan_, graph_, crossing.value) == stage_) send(static_cast<int>(t), buffer);
    if (crossing.to_stage == stage_)
      emit(Receive{static_cast<int>(t), buffer,
                   scratch("arriving pieces", program_.buffers[static_cast<std::size_t>(buffer)].bytes)});
  }
}

int StageLowering::new_buffer(std::string name, int value, ShardingSpec layout, TensorType tile,
                              Residence residence) {
  const std::int64_t bytes = aligned(byte_count(tile));
  program_.buffers.push_back(
      {std::move(name), value, std::move(layout), std::move(tile), residence, bytes, 0});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int StageLowering::scratch(const std::string& name, std::int64_t bytes, Residence residence) {
  if (bytes == 0) return -1;
  return new_buffer(name, -1, {}, {DType::i32, {(bytes + 3) / 4}}, residence);
}

/// The pieces leave from memory of their own, so that the stage goes on while they are on their way.
void StageLowering::send(int transfer, int buffer) {
  const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(transfer)];
  const int copies = device_count(plan_.stages[static_cast<std::size_t>(crossing.to_stage)].mesh.shape);
  emit(Send{transfer, buffer,
            scratch("leaving pieces", copies * program_.buffers[static_cast<std::size_t>(buffer)].bytes,
                    Residence::step)});
}

int StageLowering::state_buffer(int state) {
  int& buffer = program_.state_buffer[static_cast<std::size_t>(state)];
  if (buffer < 0) {
    const State& s = graph_.states[static_cast<std::size_t>(state)];
    const ShardingSpec layout = resting_layout(s.value);
    buffer = new_buffer(s.name, s.value, layout,
                        tile_type(value_of(graph_, s.value).type, layout, stage_plan().mesh.shape),
                        Residence::state);
    kept_[s.value] = buffer;
  }
  return buffer;
}

/// The buffer in which a value of this stage rests; made if it is not there yet.
int StageLowering::resting_buffer(int value, DType dtype) {
  const auto kept = kept_.find(value);
  if (kept != kept_.end()) return kept->second;
  const int state = state_with_next(graph_, value);
  if (state >= 0) return state_buffer(state);
  const Value& v = value_of(graph_, value);
  const ShardingSpec layout = resting_layout(value);
  TensorType tile = tile_type(v.type, layout, stage_plan().mesh.shape);
  tile.dtype = dtype;
  const bool gradient_sum = v.producer >= 0 && node_at(graph_, v.producer).op->sums_micro_batches;
  Residence residence = Residence::segment;
  if (gradient_sum && segment_ == SegmentKind::backward) residence = Residence::step;
  if (value == graph_.loss) residence = Residence::step;
  if (saved_.contains(value)) residence = Residence::micro_batch;
  const int buffer = new_buffer(v.name, value, layout, tile, residence);
  if (residence != Residence::segment) kept_[value] = buffer;
  return buffer;
}

/// The value in its resting layout, in this segment.
int StageLowering::fetch_resting(int value) {
  const ShardingSpec layout = resting_layout(value);
  const auto found = available_.find({value, layout});
  if (found != available_.end()) return found->second;
  const auto kept = kept_.find(value);
  int buffer = -1;
  if (is_input(graph_, value) && (kept == kept_.end() || segment_ == SegmentKind::forward)) {
    buffer = resting_buffer(value, value_of(graph_, value).type.dtype);
    emit(Load{input_kind(graph_, value), buffer});
  } else {
    assert(kept != kept_.end() && "a value is used before it is made");
    buffer = kept->second;
  }
  available_[{value, layout}] = buffer;
  return buffer;
}

int StageLowering::obtain(int value, const ShardingSpec& layout) {
  const auto found = available_.find({value, layout});
  if (found != available_.end()) return found->second;
  const ShardingSpec resting = resting_layout(value);
  return converted(value, fetch_resting(value), resting, layout, -1);
}

/// Converts step by step; the last step writes `destination` where given. Every layout on the way becomes
/// available.
int StageLowering::converted(int value, int from, const ShardingSpec& from_layout, const ShardingSpec& to,
                             int destination) {
  const TensorType whole{program_.buffers[static_cast<std::size_t>(from)].tile.dtype,
                         value_of(graph_, value).type.shape};
  const Conversion* steps = conversions_.between(whole, from_layout, to);
  assert(steps && "the plan asks for a conversion that cannot be");
  int current = from;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const ConversionStep& step = (*steps)[i];
    const TensorType before = program_.buffers[static_cast<std::size_t>(current)].tile;
    const TensorType after = tile_type(whole, step.after, stage_plan().mesh.shape);
    const bool last = i + 1 == steps->size();
    const int next = last && destination >= 0 ? destination
                                              : new_buffer(value_of(graph_, value).name, value, step.after,
                                                           after, Residence::segment);
    emit(Convert{step, current, next, scratch("packed", packed_bytes(step, before)),
                 scratch("unpacked", unpacked_bytes(step, after))});
    available_[{value, step.after}] = next;
    current = next;
  }
  return current;
}

void StageLowering::emit(Instruction instruction) {
  program_.segments[static_cast<std::size_t>(segment_)].push_back(std::move(instruction));
}

/// The accumulate node that can be done by the kernel of the gradient itself, or -1.
int StageLowering::fused_accumulator(const Node& node, const NodeLayout& layout) const {
  if (!node.op->accumulates || node.phase != Phase::backward || node.op->sums_micro_batches) return -1;
  const int value = node.results[0];
  const auto& users = consumers_[static_cast<std::size_t>(value)];
  if (users.size() != 1 || !node_at(graph_, users[0]).op->sums_micro_batches) return -1;
  const int sum = node_at(graph_, users[0]).results[0];
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
  if (layout.results[result] == resting_layout(value)) return resting_buffer(value, tile.dtype);
  return new_buffer(value_of(graph_, value).name, value, layout.results[result], tile, Residence::segment);
}

void StageLowering::settle_result(int value, int buffer, const ShardingSpec& made) {
  available_[{value, made}] = buffer;
  const ShardingSpec resting = resting_layout(value);
  const bool of_state = state_with_next(graph_, value) >= 0;
  const bool leaves = std::any_of(plan_.crossings.begin(), plan_.crossings.end(),
                                  [&](const Crossing& c) { return c.value == value; });
  const bool used = of_state || leaves || saved_.contains(value) || value == graph_.loss ||
                    !consumers_[static_cast<std::size_t>(value)].empty();
  if (used && made != resting)
    converted(value, buffer, made, resting,
              resting_buffer(value, program_.buffers[static_cast<std::size_t>(buffer)].tile.dtype));
  if (purpose_ == Purpose::evaluate && segment_ != SegmentKind::forward) return;
  // Recomputed values are not sent again, nor are sums of gradients before the update.
  const Node& maker = node_at(graph_, value_of(graph_, value).producer);
  const bool again = segment_ == SegmentKind::backward && maker.phase == Phase::forward;
  if (!again && !maker.op->sums_micro_batches) send_if_crossing(value);
}

void StageLowering::emit_node(int index) {
  if (skipped_.contains(index)) return;
  const Node& node = node_at(graph_, index);
  const std::vector<TensorType> whole = operand_types(graph_, node);
  const NodeLayout layout =
      layout_of(*node.op, {whole, node.attributes}, plan_.node_strategy[static_cast<std::size_t>(index)],
                stage_plan().mesh.shape);
  Compute compute{index, node.op, layout.local_attributes, {}, {}, -1, Accumulate::overwrite};
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    compute.operands.push_back(obtain(node.operands[i], layout.operands[i]));
  if (purpose_ == Purpose::evaluate && node.op->only_in_training) {
    settle_result(node.results[0], compute.operands[0], layout.results[0]);
    return;
  }
  const int accumulator = fused_accumulator(node, layout);
  if (node.op->sums_micro_batches || accumulator >= 0 || node.results[0] == graph_.loss)
    compute.accumulate = Accumulate::add_after_first_micro_batch;
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    const int sum = r == 0 && accumulator >= 0 ? node_at(graph_, accumulator).results[0] : -1;
    compute.results.push_back(sum >= 0 ? resting_buffer(sum, DType::f32)
                                       : result_buffer(node, layout, r, compute.operands));
  }
  compute.workspace = scratch("workspace", workspace_of(*node.op, layout.local_call()));
  const std::vector<int> results = compute.results;
  emit(std::move(compute));
  if (accumulator >= 0) skipped_.insert(accumulator);
  for (std::size_t r = accumulator >= 0 ? 1 : 0; r < node.results.size(); ++r)
    settle_result(node.results[r], results[r], layout.results[r]);
  // A gradient is summed as soon as it is there, so that its buffer is free again.
  for (const int result : node.results)
    for (const int user : consumers_[static_cast<std::size_t>(result)])
      if (node_at(graph_, user).op->sums_micro_batches && !skipped_.contains(user)) {
        emit_node(user);
        skipped_.insert(user);
      }
}

/// Each rank adds the squares of its tiles, divided by the number of copies, so that one sum over all ranks
/// counts every element once.
void StageLowering::emit_gradient_norm(const Node& node) {
  bool first = true;
  for (const int gradient : node.operands) {
    if (stage_of_value(plan_, graph_, gradient) != stage_) continue;
    // The layout its update wants anyway.
    ShardingSpec layout = resting_layout(gradient);
    for (const int user : consumers_[static_cast<std::size_t>(gradient)]) {
      const Node& update = node_at(graph_, user);
      if (update.op->reduces_globally) continue;
      const std::vector<TensorType> whole = operand_types(graph_, update);
      const NodeLayout wanted =
          layout_of(*update.op, {whole, update.attributes},
                    plan_.node_strategy[static_cast<std::size_t>(user)], stage_plan().mesh.shape);
      for (std::size_t i = 0; i < update.operands.size(); ++i)
        if (update.operands[i] == gradient) layout = wanted.operands[i];
    }
    const double weight = 1.0 / replica_count(layout, stage_plan().mesh.shape);
    emit(Compute{static_cast<int>(&node - graph_.nodes.data()),
                 node.op,
                 {{"weight", weight}},
                 {obtain(gradient, layout)},
                 {program_.gradient_square_sum},
                 -1,
                 first ? Accumulate::overwrite : Accumulate::add});
    first = false;
  }
  if (first) emit(Zero{program_.gradient_square_sum});
  GlobalSum sum;
  sum.scalars = {program_.gradient_square_sum, program_.loss};
  sum.packed = scratch("sums", kAlignment);
  emit(std::move(sum));
}

void StageLowering::emit_loss_sum() {
  const int producer = value_of(graph_, graph_.loss).producer;
  if (!here(producer)) {
    emit(Zero{program_.loss});
    return;
  }
  const int summed = fetch_resting(graph_.loss);
  const double weight = 1.0 / replica_count(resting_layout(graph_.loss), stage_plan().mesh.shape);
  emit(Compute{producer,
               node_at(graph_, producer).op,
               {{"weight", weight}},
               {summed},
               {program_.loss},
               -1,
               Accumulate::overwrite});
}

}  // namespace alpa
