// What a mesh does once a step: sums over devices and ranks, and updates.
#include <algorithm>

#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {

/// The loss, metrics and the norm, which all ranks add up.
void MeshLowering::make_scalars() {
  const bool trains = purpose_ == Purpose::train;
  const bool has_stand_in = trains && !updates_wait_;
  const bool has_lead = trains && plan_.has_states_at_servers();
  const std::int64_t scalars =
      1 + std::ssize(graph_.metrics) + (trains ? 1 : 0) + (has_stand_in ? 1 : 0) + (has_lead ? 1 : 0);
  const BufferIndex sums =
      values_.new_buffer("sums", {}, replicated_spec(1), {DType::f32, {scalars}}, Residence::step);
  std::int64_t offset = 0;
  const auto scalar = [&](const std::string& name) {
    const BufferIndex view = values_.new_view(name, sums, offset, {DType::f32, {}});
    offset += values_.buffer(view).bytes;
    return view;
  };
  values_.program().loss = scalar("loss");
  values_.program().metrics.clear();
  for (const Metric& metric : graph_.metrics) values_.program().metrics.push_back(scalar(metric.name));
  if (trains) {
    values_.program().gradient_square_sum = scalar("squared gradient norm");
    // Updates that do not wait for the norm go by one that changes nothing.
    const BufferIndex norm =
        has_stand_in ? scalar("no gradient norm") : values_.program().gradient_square_sum;
    if (has_stand_in && !pushes_) values_.emit(Zero{norm});
    if (!pushes_) values_.provide(graph_.gradient_square_sum, replicated_spec(0), norm);
  }
  if (has_lead) values_.program().lead = scalar("lead");
}

void MeshLowering::add_up_losses() {
  emit_sum({graph_.loss}, values_.program().loss);
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m)
    emit_sum(graph_.metrics[m].values, values_.program().metrics[m]);
}

void MeshLowering::lower_update() {
  values_.begin_segment(StageIndex(), SegmentKind::update);
  if (defers_updates_) return end_step();
  make_scalars();
  if (pushes_) return push_gradients();
  for (const ValueIndex held : held_sums_)
    values_.provide(held, placement_.layout_in_update(held, mesh_), split_sum(held));
  if (purpose_ == Purpose::train) {
    for (const StageTransfer& transfer : transfers_)
      if (const NodeIndex maker = value_of(graph_, transfer.value).producer; maker >= 0)  // a state has none
        if (node_of(graph_, maker).op->sums_micro_batches) send_to_other_meshes(transfer.value);
    receive_values_made_in(Phase::update);
    sum_gradients();
  }
  add_up_losses();
  if (purpose_ == Purpose::evaluate) {
    emit_global_sum();
    return;
  }
  update_states();
  send_state_copies();
  if (!updates_wait_) emit_global_sum();
  if (corrects_updates_) correct_update();
}

/// By what the update adds up, and the norm of it.
void MeshLowering::update_states() {
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::update) continue;
    if (serves_ && in_parts_.contains(node.results[0])) continue;  // which devices have added up
    if (!node.op->reduces_globally) {
      if (is_in_parts(n))
        emit_in_parts(n);
      else if (here(n))
        emit_node(n);
      if (in_parts_.contains(node.results[0]) && in_parts_.at(node.results[0]).at.empty())
        reduce_to_owners({node.results[0]});  // whose terms it has added up
      continue;
    }
    emit_gradient_norm(node);
    if (updates_wait_) emit_global_sum();
    if (corrects_updates_) copy_states();
  }
}

/// As they are before what comes after the norm, those that it changes.
void MeshLowering::copy_states() {
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = node_of(graph_, n);
    if (node.phase != Phase::update || n < uses_.norm || !here(n)) continue;
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

/// Where it lies in the layout of the update, from the backward on.
BufferIndex MeshLowering::split_sum(ValueIndex sum) {
  const auto [known, is_new] = split_sums_.try_emplace(sum);
  if (is_new) {
    const Value& value = value_of(graph_, sum);
    const ShardingSpec layout = placement_.layout_in_update(sum, mesh_);
    known->second =
        values_.new_buffer(value.name, sum, layout, tile_type(value.type, layout, shape()), Residence::step);
  }
  return known->second;
}

/// Over devices, where it takes no memory or has it from the backward on (or is in a bucket), in the order in
/// which the backward is done with them, so that none waits for another that comes later, or in the plan's
/// turns.
void MeshLowering::sum_gradients() {
  std::vector<ReducedGradient> sums = converted_gradients(placement_, mesh_, values_.conversions());
  const auto comes_later = [&](const ReducedGradient& each) {
    if (in_parts_.contains(each.sum)) return false;
    return !is_sum_alone(each.steps) || (each.steps.front().wire_type && plan_.bucket_of(each.sum) < 0);
  };
  if (!splits_early_) std::erase_if(sums, comes_later);
  std::ranges::stable_sort(sums, {},
                           [&](const ReducedGradient& each) { return plan_.sync_of(each.sum).turn; });
  std::map<int, std::vector<ValueIndex>> buckets;
  for (const ReducedGradient& each : sums)
    if (const int bucket = plan_.bucket_of(each.sum); bucket >= 0) buckets[bucket].push_back(each.sum);
  values_.set_early(splits_early_);
  for (const ReducedGradient& each : sums) {
    const int bucket = plan_.bucket_of(each.sum);
    if (bucket < 0 && in_parts_.contains(each.sum))
      reduce_to_owners({each.sum});
    else if (!is_sum_alone(each.steps))
      values_.bring_to(each.sum, split_sum(each.sum));
    else if (const int parts = plan_.sync_of(each.sum).parts; parts > 1)
      values_.sum_in_parts(each.sum, parts);
    else if (bucket < 0)
      values_.fetch_for_segment(each.sum);
    else if (buckets.at(bucket).back() == each.sum)
      in_parts_.contains(each.sum) ? reduce_to_owners(buckets.at(bucket))
                                   : values_.sum_together(buckets.at(bucket));
  }
  values_.set_early(false);
}

/// Those of steps before, which are there when a step begins, so that devices have all of it to add them up.
void MeshLowering::sum_held_gradients() {
  if (purpose_ != Purpose::train || !splits_early_ || defers_updates_) return;
  values_.set_early(true);
  values_.emit_when(When::first_micro_batch);
  for (const State& state : graph_.states) {
    const ValueIndex held = state.value;
    if (!state.holds_terms || placement_.mesh_of_value(held) != mesh_) continue;
    const ShardingSpec layout = placement_.layout_in_update(held, mesh_),
                       rests = values_.resting_layout(held);
    if (layout == rests) continue;
    values_.converted(held, values_.fetch_resting(held), rests, layout, split_sum(held));
    held_sums_.insert(held);
  }
  values_.emit_when(When::every_micro_batch);
  values_.set_early(false);
}

/// A node's operator over one tile, each element of the whole counted once over all copies.
void MeshLowering::add_up(NodeIndex node, BufferIndex tile, int copies, BufferIndex into, bool first) {
  const OpDef& op = *node_of(graph_, node).op;
  const Attributes attributes{{"weight", 1.0 / copies}};
  const std::vector<TensorType> operands{values_.buffer(tile).tile};
  const BufferIndex own = workspace(op, {operands, attributes});
  values_.emit(
      Compute{node, &op, attributes, {tile}, {into}, own, first ? Accumulate::overwrite : Accumulate::add});
}

/// Each rank adds the squares of its tiles, divided by the number of copies, so that one sum over all ranks
/// counts every element once. Along the axis of owners there is one of each row.
void MeshLowering::emit_gradient_norm(const Node& node) {
  const NodeIndex n = graph_.nodes.index_of(node);
  const BufferIndex into = values_.program().gradient_square_sum;
  bool first = owned_.empty();
  if (!first) values_.emit(Zero{into});
  for (const ValueIndex gradient : node.operands) {
    if (placement_.mesh_of_value(gradient) != mesh_) continue;
    const ShardingSpec layout = placement_.layout_in_update(gradient, mesh_);
    const int copies = replica_count(layout, shape());
    if (const auto parts = in_parts_.find(gradient); parts == in_parts_.end())
      add_up(n, values_.obtain(gradient, layout), copies, into, first);
    else
      for (const BufferIndex part : parts->second.at)
        add_up(n, part, copies / shape()[static_cast<std::size_t>(parts->second.of->axis)], into, false);
    first = false;
  }
  if (first) values_.emit(Zero{values_.program().gradient_square_sum});
}

void MeshLowering::emit_global_sum() {
  if (serves_ && purpose_ == Purpose::train) return add_up_at_servers();
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
    add_up(producer, values_.fetch_resting(value), replica_count(values_.resting_layout(value), shape()),
           into, first);
    first = false;
  }
  if (first) values_.emit(Zero{into});
}

}  // namespace alpa
