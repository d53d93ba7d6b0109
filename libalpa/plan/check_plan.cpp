#include "libalpa/plan/check_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/plan/owned_updates.h"
#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/plan/states_at_servers.h"
#include "libalpa/plan/update_timing.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, what,
              "the plan does not belong to this model, or was altered; make it again with alpa-plan");
}

void check_meshes(const Plan& plan) {
  if (plan.cluster.servers > 0 && plan.devices() != plan.cluster.devices())
    refuse(fmt::format("its meshes have {} of {} devices, and ranks of servers come after these",
                       plan.devices(), plan.cluster.devices()));
  std::vector<bool> taken(static_cast<std::size_t>(std::max(plan.cluster.devices(), 0)));
  for (const MeshIndex m : plan.meshes.indices()) {
    const DeviceMesh& mesh = plan.meshes[m];
    for (const int extent : mesh.shape)
      if (extent < 2) refuse(fmt::format("mesh {} has an axis of {}, expected 2 or more", m, extent));
    if (mesh.shape.size() > 4) refuse(fmt::format("mesh {} has more than 4 axes", m));
    const int first = mesh.first_device, end = first + device_count(mesh.shape);
    if (first < 0 || end > plan.cluster.devices())
      refuse(fmt::format("mesh {} wants devices {} to {}, the cluster has {}", m, first, end - 1,
                         plan.cluster.devices()));
    for (int device = first; device < end; ++device) {
      if (taken[device]) refuse(fmt::format("mesh {} shares device {} with another", m, device));
      taken[device] = true;
    }
    if (std::ranges::count(plan.stages, m, &StagePlan::mesh) == 0)
      refuse(fmt::format("mesh {} has no stage", m));
  }
}

void check_stages(const Plan& plan, const Graph& graph) {
  int layer = 0;
  for (const StageIndex s : plan.stages.indices()) {
    const StagePlan& stage = plan.stages[s];
    if (stage.first_layer != layer || stage.end_layer <= layer)
      refuse(fmt::format("stage {} starts at layer {}, expected {}", s, stage.first_layer, layer));
    layer = stage.end_layer;
    if (stage.recomputed_layers < 0 || stage.recomputed_layers > stage.end_layer - stage.first_layer)
      refuse(fmt::format("stage {} recomputes {} layers, of which it has {}", s, stage.recomputed_layers,
                         stage.end_layer - stage.first_layer));
    if (stage.offloads() && plan.cluster.host_bytes_per_s <= 0)
      refuse(
          fmt::format("stage {} has activations in the host's memory, and its cluster has no rate at which "
                      "they are moved",
                      s));
    if (stage.mesh < 0 || stage.mesh >= std::ssize(plan.meshes))
      refuse(fmt::format("stage {} is on mesh {}, the plan has {}", s, stage.mesh, plan.meshes.size()));
  }
  if (const std::vector<int> meshes = mesh_of_each_stage(plan);
      !runs_on(find_schedule(plan.schedule), meshes))
    refuse(fmt::format("stages lie on meshes {}, where schedule {} cannot run them", fmt::join(meshes, " "),
                       plan.schedule));
  if (layer != static_cast<int>(graph.layers.size()))
    refuse(fmt::format("stages cover {} of {} layers", layer, graph.layers.size()));
}

void check_counts(const Plan& plan, const Graph& graph) {
  if (plan.value_layout.size() != graph.values.size() || plan.segment_layouts.size() != graph.values.size())
    refuse(fmt::format("plan has layouts for {} values, the model has {}", plan.value_layout.size(),
                       graph.values.size()));
  if (plan.node_strategy.size() != graph.nodes.size())
    refuse(fmt::format("plan has strategies for {} nodes, the model has {}", plan.node_strategy.size(),
                       graph.nodes.size()));
}

void check_nodes(const Placement& placement) {
  const Plan& plan = placement.plan();
  const Graph& graph = placement.graph();
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    const MeshShape& mesh = plan.mesh_of(placement.stage_of_node(n)).shape;
    const std::vector<TensorType> types = operand_types(graph, node);
    const auto allowed = strategies(*node.op, {types, node.attributes}, mesh);
    if (std::find(allowed.begin(), allowed.end(), plan.node_strategy[n]) == allowed.end())
      refuse(fmt::format("node {} ({}) has a strategy that its rule does not allow", n, node.op->name));
    const NodeLayout& layout = placement.node_layout(n);
    if (node.op->sums_micro_batches && layout.results[0] != plan.value_layout[node.results[0]])
      refuse(fmt::format("the sum of node {} does not rest as it is made", n));
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (placement.uses().summed_over_step[node.results[r]] &&
          layout.results[r] != plan.value_layout[node.results[r]])
        refuse(fmt::format("the loss or metric of node {} does not rest as it is made", n));
  }
}

void check_values(const Placement& placement) {
  const Plan& plan = placement.plan();
  const Graph& graph = placement.graph();
  for (const ValueIndex v : graph.values.indices()) {
    const StageIndex stage = placement.stage_of_value(v);
    if (stage < 0) continue;
    const ShardingSpec& layout = plan.value_layout[v];
    const Value& value = value_of(graph, v);
    const SegmentLayouts& in_segments = plan.segment_layouts[v];
    for (const ShardingSpec* each : {&layout, &in_segments.forward, &in_segments.backward})
      if (!fits(value.type.shape, *each, plan.mesh_of(stage).shape))
        refuse(fmt::format("value {} ({} {}) cannot be laid out as {}", v, value.name, type_text(value.type),
                           spec_text(*each)));
    const StateIndex state = placement.uses().state_at[v];
    const bool may_hold_terms = state >= 0 && graph.states[state].holds_terms && layout.partial_max == 0;
    if (value.kind == ValueKind::state && layout.is_partial() && !may_hold_terms)
      refuse(fmt::format("state '{}' is laid out as {}, which is partial", value.name, spec_text(layout)));
  }
  for (const State& state : graph.states)
    if (state.next >= 0 && plan.value_layout[state.next] != plan.value_layout[state.value])
      refuse(fmt::format("state '{}' is updated in another layout than it rests in", state.name));
}

/// What crosses, and to which mesh: each value that a stage there uses and one of another mesh makes.
std::set<std::pair<ValueIndex, MeshIndex>> needed_transfers(const Placement& placement) {
  const Graph& graph = placement.graph();
  std::set<std::pair<ValueIndex, MeshIndex>> needed;
  for (const ValueIndex v : graph.values.indices()) {
    const MeshIndex from = placement.mesh_of_value(v);
    if (from < 0 || v == graph.gradient_square_sum) continue;
    for (const NodeIndex user : placement.uses().users_of(v))
      if (const MeshIndex mesh = placement.mesh_of_node(user); mesh != from) needed.insert({v, mesh});
  }
  return needed;
}

void check_inputs(const Placement& placement) {
  const Plan& plan = placement.plan();
  const Graph& graph = placement.graph();
  std::set<std::pair<ValueIndex, MeshIndex>> needed, listed;
  for (const Input& input : graph.inputs)
    for (const NodeIndex user : placement.uses().users_of(input.value))
      needed.insert({input.value, placement.mesh_of_node(user)});
  for (const auto& [value, mesh, in_segments] : plan.inputs) {
    if (!needed.contains({value, mesh}) || !listed.insert({value, mesh}).second)
      refuse(fmt::format("input {} is fed to mesh {}, which does not need it, or twice", value, mesh));
    for (const ShardingSpec* layout : {&in_segments.forward, &in_segments.backward})
      if (layout->is_partial() || !fits(value_of(graph, value).type.shape, *layout, plan.meshes[mesh].shape))
        refuse(fmt::format("input {} cannot be laid out as {}", value, spec_text(*layout)));
  }
  for (const auto& [value, mesh] : needed)
    if (!listed.contains({value, mesh}))
      refuse(fmt::format("input {} is used on mesh {} but never fed to it", value, mesh));
}

/// Whether a layout can be made of another: what is not partial never becomes so.
bool can_become(const ShardingSpec& from, const ShardingSpec& to) {
  return !(to.partial_sum & ~from.partial_sum) && !(to.partial_max & ~from.partial_max);
}

/// Values are brought from where they are made or rest into the layout of each segment, and from there to
/// their users and to rest.
class ConversionCheck {
 public:
  ConversionCheck(const Placement& placement, StageIndex stage)
      : placement_(placement),
        stage_(stage),
        mesh_(placement.mesh_of_stage(stage)),
        semantics_(placement.semantics(stage)),
        saved_(placement.graph().values.size()) {
    for (const ValueIndex v : semantics_.saved_values()) saved_[v] = true;
    again_ = semantics_.recomputed(saved_);
  }

  void run() const {
    for (const NodeIndex n : again_.indices()) {
      if (!semantics_.has(n)) continue;
      check_node(n, node_of(placement_.graph(), n).phase);
      if (again_[n]) check_node(n, Phase::backward);
    }
  }

 private:
  void need(ValueIndex value, const ShardingSpec& from, const ShardingSpec& to) const {
    if (!can_become(from, to))
      refuse(fmt::format("value {} ({}) cannot be turned from {} into {}", value,
                         value_of(placement_.graph(), value).name, spec_text(from), spec_text(to)));
  }

  bool is_made_in(ValueIndex value, Phase segment) const {
    if (!semantics_.makes(value)) return false;
    const NodeIndex producer = value_of(placement_.graph(), value).producer;
    return node_of(placement_.graph(), producer).phase == segment ||
           (segment == Phase::backward && again_[producer] && !saved_[value]);
  }

  void check_node(NodeIndex n, Phase segment) const {
    const Node& node = node_of(placement_.graph(), n);
    const NodeLayout& layout = placement_.node_layout(n);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueIndex v = node.operands[i];
      if (v == placement_.graph().gradient_square_sum) continue;
      const ShardingSpec start = placement_.layout_at_start(v, stage_, segment);
      if (!is_made_in(v, segment)) need(v, placement_.layout_at_rest(v, mesh_), start);
      need(v, start, layout.operands[i]);
    }
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const ValueIndex v = node.results[r];
      if (node.phase != segment && saved_[v]) continue;
      const ShardingSpec &made = layout.results[r], start = placement_.layout_at_start(v, stage_, segment),
                         rest = placement_.layout_at_rest(v, mesh_);
      need(v, made, start);
      if (node.phase == segment && made != rest) need(v, start == rest ? made : start, rest);
    }
  }

  const Placement& placement_;
  StageIndex stage_;
  MeshIndex mesh_;
  StageSemantics semantics_;
  Indexed<ValueIndex, bool> saved_;
  Indexed<NodeIndex, bool> again_;  ///< that the backward runs again
};

void check_transfers(const Placement& placement) {
  const Plan& plan = placement.plan();
  const Graph& graph = placement.graph();
  const std::set<std::pair<ValueIndex, MeshIndex>> needed = needed_transfers(placement);
  std::set<std::pair<ValueIndex, MeshIndex>> listed;
  for (const PlannedTransfer& transfer : plan.transfers) {
    if (transfer.to_mesh < 0 || transfer.to_mesh >= static_cast<int>(plan.meshes.size()) ||
        transfer.value < 0 || transfer.value >= static_cast<int>(graph.values.size()))
      refuse("a transfer names a mesh or value that is not there");
    const auto arrives = [&](const ShardingSpec& layout) {
      return fits(value_of(graph, transfer.value).type.shape, layout, plan.meshes[transfer.to_mesh].shape) &&
             !layout.is_partial();
    };
    if (!arrives(transfer.layout) || !arrives(transfer.in_segments.forward) ||
        !arrives(transfer.in_segments.backward))
      refuse(fmt::format("value {} cannot cross to mesh {}", transfer.value, transfer.to_mesh));
    if (!needed.contains({transfer.value, transfer.to_mesh}) ||
        !listed.insert({transfer.value, transfer.to_mesh}).second)
      refuse(fmt::format("value {} crosses to mesh {}, which does not need it, or twice", transfer.value,
                         transfer.to_mesh));
  }
  for (const auto& [value, mesh] : needed)
    if (!listed.contains({value, mesh}))
      refuse(fmt::format("value {} is used on mesh {} but never sent there", value, mesh));
}

/// Owners have each row once, of all sums of an update.
void check_owners(const Plan& plan, const std::map<ValueIndex, std::pair<int, OwnableUpdate>>& ownable,
                  ValueIndex sum, const std::vector<OwnedRows>& owners) {
  const auto found = ownable.find(sum);
  if (found == ownable.end())
    refuse(fmt::format("sum of gradients {} has owners, but its update cannot be shared out", sum));
  const auto& [places, update] = found->second;
  std::int64_t rows = 0;
  for (const OwnedRows& part : owners) {
    if (part.rows < 1 || part.rows > update.rows - rows || part.owner < 0 || part.owner >= places)
      refuse(fmt::format("sum of gradients {} has {} rows of owner {}, expected {} in all of {} owners", sum,
                         part.rows, part.owner, update.rows, places));
    rows += part.rows;
  }
  if (rows != update.rows)
    refuse(
        fmt::format("owners have {} rows of the sum of gradients {}, expected {}", rows, sum, update.rows));
  for (const ValueIndex other : update.sums)
    if (plan.sync_of(other).owners != owners)
      refuse(fmt::format("sums of gradients {} and {} are of one update, and have different owners", sum,
                         other));
}

void check_parts(const GradientSync& sync, const ReducedGradient* sum) {
  const bool may_have = sum && sync.bucket == -1 && sync.owners.empty() && is_sum_alone(sum->steps) &&
                        !sum->steps.front().wire_type;
  if (!may_have || sync.parts < 1 || element_count(sum->tile.shape) % sync.parts != 0)
    refuse(fmt::format("sum of gradients {} is added up in {} parts, which it does not have", sync.sum,
                       sync.parts));
}

/// Buckets have sums of one mesh that one collective can add up, in one turn.
void check_sync(const Placement& placement) {
  const Plan& plan = placement.plan();
  struct Bucket {
    const std::pair<MeshIndex, ReducedGradient>* first = nullptr;
    int count = 0, turn = 0;
    bool has_owners = false;
  };
  std::map<int, Bucket> buckets;
  std::map<ValueIndex, std::pair<MeshIndex, ReducedGradient>> sums;
  std::map<ValueIndex, std::pair<int, OwnableUpdate>> ownable;  // and how many may own it, by sums
  if (plan.sync.empty()) return;
  for (const MeshIndex m : plan.meshes.indices()) {
    const Conversions conversions(plan.cluster, plan.meshes[m]);
    for (ReducedGradient& sum : converted_gradients(placement, m, conversions))
      sums.insert({sum.sum, {m, std::move(sum)}});
    if (!plan.has_owners()) continue;
    for (const OwnableUpdate& update : ownable_updates(placement, m, conversions))
      for (const ValueIndex sum : update.sums)
        ownable.insert({sum,
                        {plan.has_states_at_servers() ? plan.cluster.server_devices()
                                                      : plan.meshes[m].shape[update.axis],
                         update}});
  }
  for (std::size_t i = 0; i < plan.sync.size(); ++i) {
    const auto& [value, bucket, turn, owners, parts] = plan.sync[i];
    if (i > 0 && value <= plan.sync[i - 1].sum)
      refuse(fmt::format("sum of gradients {} is in a bucket twice, or out of order", value));
    const auto sum = sums.find(value);
    const bool is_made_in_update = sum == sums.end() && ownable.contains(value) && bucket == -1 && turn == 0;
    if (!is_made_in_update && (sum == sums.end() || (bucket >= 0 && !is_sum_alone(sum->second.second.steps))))
      refuse(fmt::format("value {} is in bucket {}, but no sum of gradients that devices add up in place",
                         value, bucket));
    if (!owners.empty()) check_owners(plan, ownable, value, owners);
    if (bucket < -1 || turn < 0 || plan.sync[i].is_by_itself_when_ready())
      refuse(fmt::format("sum of gradients {} is in bucket {} and turn {}", value, bucket, turn));
    if (parts != 1) check_parts(plan.sync[i], sum == sums.end() ? nullptr : &sum->second.second);
    if (bucket == -1) continue;
    Bucket& of = buckets[bucket];
    if (of.count++ == 0) of.first = &sum->second, of.turn = turn, of.has_owners = !owners.empty();
    if (of.has_owners != !owners.empty())
      refuse(fmt::format("bucket {} has sums of gradients with owners and without", bucket));
    if (of.turn != turn) refuse(fmt::format("bucket {} has turns {} and {}", bucket, of.turn, turn));
    const auto& [mesh, first] = *of.first;
    if (mesh != sum->second.first || !can_share_bucket(first, sum->second.second))
      refuse(fmt::format("bucket {} has sums of gradients {} and {}, which are not added up alike", bucket,
                         first.sum, value));
  }
  for (int expected = 0; const auto& [bucket, of] : buckets) {
    if (bucket != expected++) refuse(fmt::format("there is a bucket {}, but none {}", bucket, expected - 1));
    if (of.count < 2) refuse(fmt::format("bucket {} has one sum of gradients, expected two or more", bucket));
  }
}

/// What rests on the host is of one layer, its update is made once, and moves have a price.
void check_on_host(const Placement& placement) {
  const Plan& plan = placement.plan();
  const GraphUses& uses = placement.uses();
  if (plan.on_host.empty()) return;
  if (plan.cluster.host_bytes_per_s <= 0)
    refuse("states rest in the host's memory, and its cluster has no rate at which they are moved");
  if (corrects_updates(uses, plan.updates))
    refuse("states rest in the host's memory, and updates may have to be made again");
  for (std::size_t i = 0; i < plan.on_host.size(); ++i) {
    const ValueIndex value = plan.on_host[i];
    if (i > 0 && value <= plan.on_host[i - 1])
      refuse(fmt::format("value {} rests in the host's memory twice, or out of order", value));
    const bool is_known = value >= 0 && value < std::ssize(uses.state_at);
    const StateIndex state = is_known ? uses.state_at[value] : StateIndex();
    if (state < 0 || !may_rest_on_host(uses, uses.graph.states[state]))
      refuse(
          fmt::format("value {} rests in the host's memory, but is neither a state of its update alone nor a "
                      "parameter of one layer",
                      value));
  }
}

void check_staleness(const Placement& placement) {
  const Plan& plan = placement.plan();
  if (plan.staleness < Plan::kSynchronous || plan.staleness > kMostStaleness)
    refuse(fmt::format("parameters are {} steps old, expected at most {}", plan.staleness, kMostStaleness));
  if (!plan.has_states_at_servers()) return;
  if (const std::string unfit = unfit_for_servers(placement); !unfit.empty())
    refuse("servers hold its states, but " + unfit);
  const Conversions conversions(plan.cluster, plan.meshes[MeshIndex(0)]);
  for (const OwnableUpdate& update : ownable_updates(placement, MeshIndex(0), conversions))
    if (plan.sync_of(update.sums.back()).owners.empty())
      refuse(fmt::format("servers hold its states, but none the sum of gradients {}", update.sums.back()));
}

}  // namespace

void check_plan(const Plan& plan, const Graph& graph) {
  if (graph_fingerprint(graph) != plan.graph_fingerprint)
    refuse(fmt::format("the model's graph is {}, the plan was made for {}",
                       graph_fingerprint(graph).substr(0, 12), plan.graph_fingerprint.substr(0, 12)));
  if (plan.stages.empty() || plan.micro_batches < 1) refuse("plan has no stages or no micro-batches");
  if (plan.micro_batches > kMostMicroBatches)
    refuse(fmt::format("{} micro-batches, expected at most {}", plan.micro_batches, kMostMicroBatches));
  check_stages(plan, graph);
  check_meshes(plan);
  check_counts(plan, graph);
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  check_nodes(placement);
  check_values(placement);
  check_transfers(placement);
  check_inputs(placement);
  check_staleness(placement);
  check_sync(placement);
  check_on_host(placement);
  for (const StageIndex stage : plan.stages.indices()) ConversionCheck(placement, stage).run();
}

}  // namespace alpa
