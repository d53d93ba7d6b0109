#include "libalpa/program/stage_values.h"

#include <algorithm>
#include <cassert>

#include "libalpa/base/match.h"

namespace alpa {
namespace {

int input_of(const Graph& graph, int value) {
  const auto is_it = [&](const Input& input) { return input.value == value; };
  const auto found = std::find_if(graph.inputs.begin(), graph.inputs.end(), is_it);
  assert(found != graph.inputs.end() && "not an input");
  return static_cast<int>(found - graph.inputs.begin());
}

std::int64_t aligned(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StageValues::StageValues(const Graph& graph, const Plan& plan, int stage)
    : graph_(graph),
      plan_(plan),
      stage_(stage),
      conversions_(plan.cluster, plan.stages[static_cast<std::size_t>(stage)].mesh) {
  program_.mesh = conversions_.mesh();
  program_.lanes = {Lane{}};
  program_.state_buffer.assign(graph.states.size(), -1);
}

ShardingSpec StageValues::resting_layout(int value) const {
  const int from = stage_of_value(plan_, graph_, value);
  if (from == stage_) return plan_.value_layout[static_cast<std::size_t>(value)];
  for (const Crossing& crossing : plan_.crossings)
    if (crossing.value == value && crossing.to_stage == stage_) return crossing.layout;
  return replicated_spec(value_of(graph_, value).type.shape.size());
}

void StageValues::begin_segment(SegmentKind kind) {
  program_.segments.push_back({kind == SegmentKind::update ? -1 : stage_, kind, {}});
  available_.clear();
}

/// The lane that an instruction queues in, made at its first use.
int StageValues::lane_of(const InstructionBody& body) {
  const Lane lane = std::visit(
      Match{
          [](const Load&) {
            return Lane{LaneKind::copy, -1};
          },
          [](const Compute&) { return Lane{}; },
          [](const Convert& i) {
            return i.step.kind == ConversionKind::slice ? Lane{} : Lane{LaneKind::collective, i.step.axis};
          },
          [](const Shift& i) {
            return Lane{LaneKind::collective, i.axis};
          },
          [&](const Send& i) {
            return Lane{LaneKind::send, crossing(i.transfer).to_stage};
          },
          [&](const Receive& i) {
            return Lane{LaneKind::receive, stage_of_value(plan_, graph_, crossing(i.transfer).value)};
          },
          [](const GlobalSum&) {
            return Lane{LaneKind::collective, -1};
          },
          [](const Zero&) { return Lane{}; },
      },
      body);
  const auto found = std::ranges::find(program_.lanes, lane);
  if (found != program_.lanes.end()) return static_cast<int>(found - program_.lanes.begin());
  program_.lanes.push_back(lane);
  return static_cast<int>(program_.lanes.size()) - 1;
}

void StageValues::emit(InstructionBody body) {
  const int lane = lane_of(body);
  program_.segments.back().instructions.push_back({std::move(body), lane});
}

int StageValues::new_buffer(std::string name, int value, ShardingSpec layout, TensorType tile,
                            Residence residence) {
  const std::int64_t bytes = aligned(byte_count(tile));
  program_.buffers.push_back({std::move(name), value, std::move(layout), std::move(tile), residence, bytes});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int StageValues::visiting_buffer(int own, int passed, int axis) {
  const Buffer like = buffer(own);
  const int visiting = new_buffer(like.name, like.value, like.layout, like.tile, Residence::segment);
  program_.buffers.back().passed = passed;
  program_.buffers.back().ring_axis = axis;
  return visiting;
}

int StageValues::scratch(const std::string& name, std::int64_t bytes) {
  if (bytes == 0) return -1;
  return new_buffer(name, -1, {}, {DType::i32, {(bytes + 3) / 4}}, Residence::segment);
}

int StageValues::leaving(std::int64_t bytes, std::int64_t messages) {
  const int buffer = new_buffer("leaving pieces", -1, {}, {DType::i32, {(bytes + 3) / 4}}, Residence::step);
  program_.buffers.back().slots = messages;
  return buffer;
}

int StageValues::state_buffer(int state) {
  int& buffer = program_.state_buffer[static_cast<std::size_t>(state)];
  if (buffer < 0) {
    const State& s = graph_.states[static_cast<std::size_t>(state)];
    const ShardingSpec layout = resting_layout(s.value);
    buffer = new_buffer(s.name, s.value, layout, tile_type(value_of(graph_, s.value).type, layout, mesh()),
                        Residence::state);
    kept_[s.value] = buffer;
  }
  return buffer;
}

int StageValues::resting_buffer(int value, DType dtype) {
  const auto kept = kept_.find(value);
  if (kept != kept_.end()) return kept->second;
  const int state = state_with_next(graph_, value);
  if (state >= 0) return state_buffer(state);
  const Value& v = value_of(graph_, value);
  const ShardingSpec layout = resting_layout(value);
  TensorType tile = tile_type(v.type, layout, mesh());
  tile.dtype = dtype;
  const bool gradient_sum = v.producer >= 0 && node_of(graph_, v.producer).op->sums_micro_batches;
  Residence residence = Residence::segment;
  if (gradient_sum && segment() != SegmentKind::update) residence = Residence::step;
  if (is_summed_over_step(graph_, value)) residence = Residence::step;
  if (is_kept_for_backward(value) ||
      (segment() == SegmentKind::backward_inputs && kept_for_weights_.contains(value)))
    residence = Residence::micro_batch;
  const int buffer = new_buffer(v.name, value, layout, tile, residence);
  if (residence != Residence::segment) kept_[value] = buffer;
  return buffer;
}

int StageValues::fetch_resting(int value) {
  const ShardingSpec layout = resting_layout(value);
  const auto found = available_.find({value, layout});
  if (found != available_.end()) return found->second;
  const auto kept = kept_.find(value);
  int buffer = -1;
  if (value_of(graph_, value).kind == ValueKind::input &&
      (kept == kept_.end() || segment() == SegmentKind::forward)) {
    buffer = resting_buffer(value, value_of(graph_, value).type.dtype);
    emit(Load{input_of(graph_, value), buffer});
  } else {
    assert(kept != kept_.end() && "a value is used before it is made");
    buffer = kept->second;
  }
  available_[{value, layout}] = buffer;
  return buffer;
}

int StageValues::obtain(int value, const ShardingSpec& layout) {
  const auto found = available_.find({value, layout});
  if (found != available_.end()) return found->second;
  const ShardingSpec resting = resting_layout(value);
  return converted(value, fetch_resting(value), resting, layout, -1);
}

int StageValues::converted(int value, int from, const ShardingSpec& from_layout, const ShardingSpec& to,
                           int destination) {
  const TensorType whole{program_.buffers[static_cast<std::size_t>(from)].tile.dtype,
                         value_of(graph_, value).type.shape};
  const Conversion* steps = conversions_.between(whole, from_layout, to);
  assert(steps && "the plan asks for a conversion that cannot be");
  int current = from;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const ConversionStep& step = (*steps)[i];
    const TensorType before = program_.buffers[static_cast<std::size_t>(current)].tile;
    const TensorType after = tile_type(whole, step.after, mesh());
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

}  // namespace alpa
