#include "libalpa/program/lower/mesh_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/program/lower/lane_for.h"

namespace alpa {
namespace {

int input_of(const Graph& graph, ValueIndex value) {
  const auto is_it = [&](const Input& input) { return input.value == value; };
  const auto found = std::find_if(graph.inputs.begin(), graph.inputs.end(), is_it);
  assert(found != graph.inputs.end() && "not an input");
  return static_cast<int>(found - graph.inputs.begin());
}

}  // namespace

MeshValues::MeshValues(const Placement& placement, MeshIndex mesh,
                       const std::vector<StageTransfer>& transfers)
    : placement_(placement),
      uses_(placement.uses()),
      graph_(placement.graph()),
      mesh_(mesh),
      transfers_(transfers),
      conversions_(placement.plan().cluster, placement.plan().meshes[mesh]) {
  for (const Value& each : graph_.values)
    if (each.row_ids >= 0) row_ids_.insert(each.row_ids);
  program_.mesh = conversions_.mesh();
  program_.lanes = {Lane{}};
  program_.state_buffer.assign(graph_.states.size(), BufferIndex());
  program_.state_parts.assign(graph_.states.size(), {});
}

void MeshValues::begin_segment(StageIndex stage, SegmentKind kind) {
  program_.segments.push_back({stage, kind, {}});
  known_ = known_elsewhen_ = {};
}

void MeshValues::turn_to_step_before() {
  std::swap(known_, known_elsewhen_);
  when_ = When::of_step_before;
}

void MeshValues::turn_to_this_step() {
  std::swap(known_, known_elsewhen_);
  when_ = When::every_micro_batch;
}

/// Made at its first use.
int MeshValues::lane_of(const InstructionBody& body) {
  const Lane lane = lane_for(body, transfers_);
  const auto found = std::ranges::find(program_.lanes, lane);
  if (found != program_.lanes.end()) return static_cast<int>(found - program_.lanes.begin());
  program_.lanes.push_back(lane);
  return static_cast<int>(program_.lanes.size()) - 1;
}

void MeshValues::emit(InstructionBody body) {
  const int lane = lane_of(body);
  program_.segments.back().instructions.push_back({std::move(body), lane, when_});
}

BufferIndex MeshValues::new_buffer(std::string name, ValueIndex value, ShardingSpec layout, TensorType tile,
                                   Residence residence) {
  const std::int64_t bytes = buffer_bytes(tile);
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.value = value;
  buffer.layout = std::move(layout);
  buffer.tile = std::move(tile);
  buffer.residence = residence;
  buffer.bytes = bytes;
  return program_.buffers.push_back(std::move(buffer));
}

BufferIndex MeshValues::new_view(std::string name, BufferIndex of, std::int64_t offset, TensorType tile) {
  Buffer view = buffer(of);
  view.name = std::move(name);
  view.tile = std::move(tile);
  view.bytes = byte_count(view.tile);
  view.view_of = of;
  view.view_offset = offset;
  return program_.buffers.push_back(std::move(view));
}

BufferIndex MeshValues::remote_block_buffer(BufferIndex own, int hops, int axis) {
  const Buffer like = buffer(own);
  const BufferIndex visiting = new_buffer(like.name, like.value, like.layout, like.tile, Residence::segment);
  program_.buffers.back().ring_hops = hops;
  program_.buffers.back().ring_axis = axis;
  return visiting;
}

BufferIndex MeshValues::scratch(const std::string& name, std::int64_t bytes) {
  if (bytes == 0) return {};
  TensorType tile{DType::i32, {(bytes + 3) / 4}};
  if (!is_early_) return new_buffer(name, {}, {}, std::move(tile), Residence::segment);
  const auto [known, is_new] = scratch_of_.try_emplace(name);
  if (is_new) known->second = new_buffer(name, {}, {}, tile, Residence::step);
  Buffer& shared = program_.buffers[known->second];
  if (const std::int64_t wanted = buffer_bytes(tile); wanted > shared.bytes) {
    shared.bytes = wanted;
    shared.tile = std::move(tile);
  }
  return known->second;
}

BufferIndex MeshValues::message_memory(const std::string& name, std::int64_t bytes, std::int64_t messages) {
  const BufferIndex buffer = new_buffer(name, {}, {}, {DType::i32, {(bytes + 3) / 4}}, Residence::step);
  program_.buffers.back().slots = messages;
  return buffer;
}

BufferIndex MeshValues::state_buffer(StateIndex state) {
  BufferIndex& buffer = program_.state_buffer[state];
  if (buffer < 0) {
    const State& s = graph_.states[state];
    const ShardingSpec layout = resting_layout(s.value);
    buffer = new_buffer(s.name, s.value, layout, tile_type(value_of(graph_, s.value).type, layout, shape()),
                        Residence::state);
    if (placement_.plan().rests_on_host(s.value)) program_.buffers.back().space = MemorySpace::host;
    kept_[s.value] = buffer;
  }
  return buffer;
}

void MeshValues::state_in_parts(StateIndex state, const std::vector<Part>& parts) {
  const ValueIndex value = graph_.states[state].value;
  program_.state_parts[state] = buffers_of_rows(value, resting_layout(value), Residence::state, parts);
}

std::vector<BufferIndex> MeshValues::buffers_of_rows(ValueIndex value, const ShardingSpec& layout,
                                                     Residence residence, const std::vector<Part>& parts) {
  std::vector<BufferIndex> buffers;
  TensorType tile = tile_type(value_of(graph_, value).type, layout, shape());
  for (const Part& part : parts) {
    tile.shape[0] = part.rows;
    buffers.push_back(new_buffer(value_of(graph_, value).name, value, layout, tile, residence));
    program_.buffers[buffers.back()].owner = part.owner;
    program_.buffers[buffers.back()].first_row = part.first_row;
  }
  return buffers;
}

std::vector<BufferIndex> MeshValues::views_of_rows(BufferIndex whole, const std::vector<Part>& parts) {
  std::vector<BufferIndex> views;
  TensorType tile = buffer(whole).tile;
  const std::int64_t row_bytes = byte_count(tile) / tile.shape[0];
  for (const Part& part : parts) {
    tile.shape[0] = part.rows;
    views.push_back(new_view(buffer(whole).name, whole, part.first_row * row_bytes, tile));
    program_.buffers.back().owner = part.owner;
    program_.buffers.back().first_row = part.first_row;
  }
  return views;
}

/// What rests there, or in this segment stands for it.
BufferIndex MeshValues::on_device(BufferIndex at_rest) {
  if (buffer(at_rest).space == MemorySpace::device) return at_rest;
  const auto [known, is_new] = known_.staged.try_emplace(at_rest);
  if (is_new) {
    const Buffer like = buffer(at_rest);
    known->second = new_buffer(like.name, like.value, like.layout, like.tile, Residence::segment);
  }
  return known->second;
}

BufferIndex MeshValues::resting_buffer(ValueIndex value, DType dtype) {
  const auto kept = kept_.find(value);
  if (kept != kept_.end()) return on_device(kept->second);
  const StateIndex state = uses_.state_after_value(value);
  if (state >= 0) return on_device(state_buffer(state));
  const Value& v = value_of(graph_, value);
  const ShardingSpec layout = resting_layout(value);
  TensorType tile = tile_type(v.type, layout, shape());
  tile.dtype = dtype;
  const bool gradient_sum = v.producer >= 0 && node_of(graph_, v.producer).op->sums_micro_batches;
  Residence residence = Residence::segment;
  if (gradient_sum && segment() != SegmentKind::update) residence = Residence::step;
  if (uses_.summed_over_step[value]) residence = Residence::step;
  if (is_kept(value) || (segment() == SegmentKind::backward_inputs && kept_for_weights_.contains(value)))
    residence = Residence::micro_batch;
  const BufferIndex buffer = new_buffer(v.name, value, layout, tile, residence);
  if (kept_on_host_.contains(value)) program_.buffers.back().space = MemorySpace::host;
  if (residence != Residence::segment) kept_[value] = buffer;
  return on_device(buffer);
}

BufferIndex MeshValues::fetch_resting(ValueIndex value) {
  const ShardingSpec layout = resting_layout(value);
  const auto found = known_.available.find({value, layout});
  if (found != known_.available.end()) return found->second;
  const auto kept = kept_.find(value);
  BufferIndex buffer;
  if (value_of(graph_, value).kind == ValueKind::input && kept == kept_.end()) {
    buffer = resting_buffer(value, value_of(graph_, value).type.dtype);
    emit(Load{input_of(graph_, value), buffer});
  } else {
    assert(kept != kept_.end() && "a value is used before it is made");
    buffer = on_device(kept->second);
    if (buffer != kept->second) emit(Fetch{kept->second, buffer});
  }
  known_.available[{value, layout}] = buffer;
  return buffer;
}

bool MeshValues::sums_in_place(ValueIndex value) const {
  return in_update() && is_summed_where_it_lies(placement_, mesh_, value);
}

const Conversion* MeshValues::steps_in_place(ValueIndex value) {
  if (!sums_in_place(value)) return nullptr;
  const TensorType whole{buffer(fetch_resting(value)).tile.dtype, value_of(graph_, value).type.shape};
  return conversions_.between(whole, resting_layout(value), segment_layout(value),
                              value_of(graph_, value).wire);
}

void MeshValues::sum_together(const std::vector<ValueIndex>& sums) {
  const Conversion steps = *steps_in_place(sums.front());
  std::int64_t bytes = 0;
  for (const ValueIndex sum : sums) bytes += buffer(fetch_resting(sum)).bytes;
  const DType type = buffer(fetch_resting(sums.front())).tile.dtype;
  const BufferIndex bucket = new_buffer(fmt::format("bucket of {} sums", sums.size()), {}, replicated_spec(1),
                                        {type, {bytes / byte_count({type, {}})}}, Residence::step);
  std::int64_t offset = 0;
  for (const ValueIndex sum : sums) {
    Buffer& view = program_.buffers[fetch_resting(sum)];
    view.view_of = bucket;
    view.view_offset = offset;
    offset += view.bytes;
  }
  for (ConversionStep step : steps) {
    step.after = replicated_spec(1);
    emit_conversion(std::move(step), bucket, bucket);
  }
  for (const ValueIndex sum : sums) known_.available[{sum, segment_layout(sum)}] = fetch_resting(sum);
}

void MeshValues::sum_in_parts(ValueIndex sum, int parts) {
  const Conversion steps = *steps_in_place(sum);
  const BufferIndex whole = fetch_resting(sum);
  TensorType tile = buffer(whole).tile;
  tile.shape = {element_count(tile.shape) / parts};
  for (int part = 0; part < parts; ++part) {
    const BufferIndex view = new_view(buffer(whole).name, whole, part * byte_count(tile), tile);
    program_.buffers[view].layout = replicated_spec(1);
    for (ConversionStep step : steps) {
      step.after = replicated_spec(1);
      emit_conversion(std::move(step), view, view);
    }
  }
  known_.available[{sum, segment_layout(sum)}] = whole;
}

void MeshValues::bring_to(ValueIndex sum, BufferIndex destination) {
  const ShardingSpec layout = segment_layout(sum);
  known_.available[{sum, layout}] =
      converted(sum, fetch_resting(sum), resting_layout(sum), layout, destination, sums_in_place(sum));
}

ShardingSpec MeshValues::segment_layout(ValueIndex value) const {
  if (in_update()) return placement_.layout_in_update(value, mesh_);
  return placement_.layout_at_start(value, stage(),
                                    segment() == SegmentKind::forward ? Phase::forward : Phase::backward);
}

BufferIndex MeshValues::fetch_leaving(ValueIndex value, const ShardingSpec& layout) {
  if (layout == resting_layout(value)) return fetch_resting(value);
  return sums_in_place(value) ? brought(value, layout) : obtain(value, layout);
}

BufferIndex MeshValues::fetch_for_segment(ValueIndex value) { return brought(value, segment_layout(value)); }

BufferIndex MeshValues::brought(ValueIndex value, const ShardingSpec& layout) {
  const auto found = known_.available.find({value, layout});
  if (found != known_.available.end()) return found->second;
  if (const auto left = starts_of_weights_.find(value);
      left != starts_of_weights_.end() && segment() == SegmentKind::backward_weights)
    return known_.available[{value, layout}] = left->second;
  const auto made = known_.made.find(value);
  BufferIndex buffer;
  if (made == known_.made.end())
    buffer = converted(value, fetch_resting(value), resting_layout(value), layout, {}, sums_in_place(value));
  else
    buffer = converted(value, made->second.buffer, made->second.layout, layout);
  known_.available[{value, layout}] = buffer;
  return buffer;
}

void MeshValues::provide(ValueIndex value, const ShardingSpec& layout, BufferIndex buffer) {
  known_.made[value] = {layout, buffer};
  if (in_update()) known_.available[{value, layout}] = buffer;
}

void MeshValues::forget(ValueIndex value) {
  known_.made.erase(value);
  std::erase_if(known_.available, [&](const auto& each) { return each.first.first == value; });
}

void MeshValues::forget_conversions(ValueIndex value) {
  if (const Conversion* const steps = steps_in_place(value); steps && steps_over_source(*steps) > 0) return;
  const ShardingSpec resting = resting_layout(value);
  std::erase_if(known_.available,
                [&](const auto& each) { return each.first.first == value && each.first.second != resting; });
}

void MeshValues::outlive_segment(BufferIndex buffer) {
  Residence& residence = program_.buffers[buffer].residence;
  if (residence == Residence::segment) residence = Residence::micro_batch;
}

void MeshValues::provide_resting(ValueIndex value, BufferIndex buffer) {
  known_.available[{value, resting_layout(value)}] = buffer;
  const StateIndex state = uses_.state_after_value(value);
  const auto kept = kept_.find(value);
  const BufferIndex at_rest = state >= 0            ? state_buffer(state)
                              : kept != kept_.end() ? kept->second
                                                    : BufferIndex();
  if (at_rest >= 0 && this->buffer(at_rest).space == MemorySpace::host) emit(Offload{buffer, at_rest});
  // Another node's buffer, where there is nothing to be done in an evaluation.
  if (is_kept(value) && kept_.insert({value, buffer}).second) outlive_segment(buffer);
}

void MeshValues::leave_for_weights(ValueIndex value) {
  const BufferIndex buffer = fetch_for_segment(value);
  outlive_segment(buffer);
  starts_of_weights_[value] = buffer;
}

void MeshValues::bring_to_rest(ValueIndex value) {
  const ShardingSpec resting = resting_layout(value), start = segment_layout(value);
  const Made made = known_.made.at(value);
  const BufferIndex at_rest = resting_buffer(value, buffer(made.buffer).tile.dtype);
  if (start == resting)
    converted(value, made.buffer, made.layout, resting, at_rest);
  else
    converted(value, fetch_for_segment(value), start, resting, at_rest);
  provide_resting(value, at_rest);
}

BufferIndex MeshValues::obtain(ValueIndex value, const ShardingSpec& layout) {
  if (const auto gathered = known_.gathered_ids.find({value, layout}); gathered != known_.gathered_ids.end())
    return gathered->second;
  return converted(value, fetch_for_segment(value), segment_layout(value), layout);
}

BufferIndex MeshValues::converted(ValueIndex value, BufferIndex from, const ShardingSpec& from_layout,
                                  const ShardingSpec& to, BufferIndex destination, bool over_source) {
  const TensorType whole{program_.buffers[from].tile.dtype, value_of(graph_, value).type.shape};
  const Conversion* steps = conversions_.between(whole, from_layout, to, value_of(graph_, value).wire);
  assert(steps && "the plan asks for a conversion that cannot be");
  const std::size_t in_place = over_source ? steps_over_source(*steps) : 0;
  const auto leaves_out = [](const ConversionStep& step) { return step.sent_share.has_value(); };
  if (std::ranges::any_of(*steps, leaves_out)) ids_of_rows(value, to);  // and each layout on the way
  BufferIndex current = from;
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const ConversionStep& step = (*steps)[i];
    const bool last = i + 1 == steps->size();
    const BufferIndex next = i < in_place ? current
                             : last && destination >= 0
                                 ? destination
                                 : new_buffer(value_of(graph_, value).name, value, step.after,
                                              tile_type(whole, step.after, shape()),
                                              is_early_ ? Residence::step : Residence::segment);
    emit_conversion(step, current, next, leaves_out(step) ? ids_of_rows(value, step.after) : BufferIndex());
    if (row_ids_.contains(value)) known_.gathered_ids[{value, step.after}] = next;
    current = next;
  }
  return current;
}

BufferIndex MeshValues::ids_of_rows(ValueIndex rows, ShardingSpec layout) {
  layout.axes.pop_back();
  return obtain(value_of(graph_, rows).row_ids, layout);
}

void MeshValues::emit_conversion(ConversionStep step, BufferIndex from, BufferIndex to, BufferIndex row_ids) {
  const std::string of_lane = is_early_ ? fmt::format(" for axis {}", step.axis) : "";
  const BufferIndex packed = scratch("packed" + of_lane, packed_bytes(step, buffer(from).tile));
  const BufferIndex unpacked = scratch("unpacked" + of_lane, unpacked_bytes(step, buffer(to).tile));
  emit(Convert{std::move(step), from, to, packed, unpacked, row_ids});
}

}  // namespace alpa
