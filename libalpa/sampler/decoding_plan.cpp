#include "libalpa/sampler/decoding_plan.h"

#include <algorithm>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/plan/placement.h"

namespace alpa {
namespace {

class DecodingPlan {
 public:
  DecodingPlan(const Plan& trained, const Graph& training, const DecodingGraph& decoding)
      : trained_(trained),
        training_(training),
        decoding_(decoding),
        graph_(decoding.graph),
        training_uses_(training),
        training_placement_(trained, training_uses_) {}

  Plan run() {
    plan_.model_name = trained_.model_name;
    plan_.model_toml = trained_.model_toml;
    plan_.graph_fingerprint = graph_fingerprint(graph_);
    plan_.micro_batch_samples = graph_.samples;
    plan_.schedule = trained_.schedule;
    plan_.cluster = trained_.cluster;
    plan_.method = trained_.method;
    plan_.meshes = trained_.meshes;
    for (const StagePlan& stage : trained_.stages)
      plan_.stages.push_back({stage.first_layer, stage.end_layer, stage.mesh});
    plan_.node_strategy.resize(graph_.nodes.size());
    plan_.value_layout.resize(graph_.values.size());
    plan_.segment_layouts.resize(graph_.values.size());
    for (const State& state : graph_.states) {
      lay_out_parameter(state);
      const ValueIndex trained = decoding_.trained_value[state.value];
      if (trained >= 0 && trained_.rests_on_host(trained)) plan_.on_host.push_back(state.value);
    }
    std::ranges::sort(plan_.on_host);
    for (const NodeIndex n : graph_.nodes.indices()) place(n);
    feed_inputs();
    cross_meshes();
    check_plan(plan_, graph_);
    return std::move(plan_);
  }

 private:
  const MeshShape& mesh_of(const Node& node) const {
    return plan_.mesh_of(stage_of_layer(plan_, node.layer)).shape;
  }

  /// The layout of a value of the training for the one that takes its place, as far as it fits that.
  std::optional<ShardingSpec> as_here(ValueIndex here, ValueIndex trained, ShardingSpec spec,
                                      const MeshShape& mesh) const {
    const Shape& shape = value_of(graph_, here).type.shape;
    const Shape& before = value_of(training_, trained).type.shape;
    if (shape.size() != before.size()) return std::nullopt;
    if (shape.size() > 1 && shape[1] != before[1]) spec.axes[1].clear();
    return fits(shape, spec, mesh) ? std::optional(spec) : std::nullopt;
  }

  void set_layout(ValueIndex value, const ShardingSpec& layout, const ShardingSpec& in_segment) {
    plan_.value_layout[value] = layout;
    plan_.segment_layouts[value] = {in_segment, in_segment};
  }

  void lay_out_parameter(const State& state) {
    const ValueIndex trained = decoding_.trained_value[state.value];
    if (trained < 0) return;  // laid out by who uses it
    set_layout(state.value, trained_.value_layout[trained], trained_.segment_layouts[trained].forward);
  }

  /// The layouts that operands and results would have in the training; nullopt: no matter.
  struct Wanted {
    std::vector<std::optional<ShardingSpec>> operands, results;
    int missed(const NodeLayout& layout) const {
      const auto count = [](const std::vector<std::optional<ShardingSpec>>& wanted,
                            const std::vector<ShardingSpec>& given) {
        int misses = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) misses += wanted[i] && *wanted[i] != given[i];
        return misses;
      };
      return count(operands, layout.operands) + count(results, layout.results);
    }
  };

  Wanted wanted_of(NodeIndex n, const MeshShape& mesh) const {
    const Node& node = graph_.nodes[n];
    const NodeIndex trained = decoding_.trained_node[n];
    Wanted wanted;
    if (trained < 0) {
      for (const ValueIndex operand : node.operands) wanted.operands.push_back(plan_.value_layout[operand]);
      wanted.results.resize(node.results.size());
      return wanted;
    }
    const Node& before = training_.nodes[trained];
    const NodeLayout& layout = training_placement_.node_layout(trained);
    for (const ValueIndex operand : node.operands) {
      const auto takes_place = [&](ValueIndex value) { return decoding_.decoded_value[value] == operand; };
      const auto found = std::ranges::find_if(before.operands, takes_place);
      wanted.operands.push_back(
          found == before.operands.end()
              ? std::nullopt
              : as_here(operand, *found,
                        layout.operands[static_cast<std::size_t>(found - before.operands.begin())], mesh));
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      wanted.results.push_back(r < before.results.size()
                                   ? as_here(node.results[r], before.results[r], layout.results[r], mesh)
                                   : std::nullopt);
    return wanted;
  }

  void place(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    const MeshShape& mesh = mesh_of(node);
    const std::vector<TensorType> types = operand_types(graph_, node);
    const OpCall call{types, node.attributes};
    const Wanted wanted = wanted_of(n, mesh);
    std::optional<NodeLayout> best;
    for (const Strategy& strategy : strategies(*node.op, call, mesh)) {
      NodeLayout layout = layout_of(*node.op, call, strategy, mesh);
      if (best && wanted.missed(layout) >= wanted.missed(*best)) continue;
      best = std::move(layout);
      plan_.node_strategy[n] = strategy;
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i)  // states that live from token to token
      if (value_of(graph_, node.operands[i]).kind == ValueKind::state &&
          decoding_.trained_value[node.operands[i]] < 0)
        set_layout(node.operands[i], best->operands[i], best->operands[i]);
    for (std::size_t r = 0; r < node.results.size(); ++r)
      rest(node.results[r], best->results[r], mesh, node.op->overwritten(r) >= 0);
  }

  /// Where a result rests that is made so: as in the training, if what is made can become that.
  void rest(ValueIndex value, const ShardingSpec& made, const MeshShape& mesh, bool in_place) {
    const ValueIndex trained = decoding_.trained_value[value];
    if (trained < 0 || in_place) return set_layout(value, made, without_terms(made));
    const auto reachable = [&](const ShardingSpec& layout) {
      const std::optional<ShardingSpec> here = as_here(value, trained, layout, mesh);
      const bool can_be =
          here && !(here->partial_sum & ~made.partial_sum) && !(here->partial_max & ~made.partial_max);
      return can_be ? *here : without_terms(made);
    };
    set_layout(value, reachable(trained_.value_layout[trained]),
               reachable(trained_.segment_layouts[trained].forward));
  }

  void feed_inputs() {
    const GraphUses uses(graph_);
    const Placement placement(plan_, uses);
    for (const Input& input : graph_.inputs)
      for (const MeshIndex mesh : plan_.meshes.indices()) {
        const auto is_there = [&](NodeIndex user) { return placement.mesh_of_node(user) == mesh; };
        if (std::ranges::none_of(uses.users_of(input.value), is_there)) continue;
        const ShardingSpec whole = replicated_spec(value_of(graph_, input.value).type.shape.size());
        plan_.inputs.push_back({input.value, mesh, {whole, whole}});
      }
  }

  /// What a stage uses of another mesh, in the layout that it arrived in.
  void cross_meshes() {
    const GraphUses uses(graph_);
    const Placement placement(plan_, uses);
    for (const ValueIndex v : graph_.values.indices())
      for (const MeshIndex mesh : plan_.meshes.indices()) {
        const auto is_there = [&](NodeIndex user) { return placement.mesh_of_node(user) == mesh; };
        const MeshIndex from = placement.mesh_of_value(v);
        if (from >= 0 && from != mesh && std::ranges::any_of(uses.users_of(v), is_there))
          plan_.transfers.push_back(arriving(v, mesh));
      }
  }

  PlannedTransfer arriving(ValueIndex value, MeshIndex mesh) const {
    const ShardingSpec whole = replicated_spec(value_of(graph_, value).type.shape.size());
    PlannedTransfer transfer{value, mesh, whole, {whole, whole}};
    for (const PlannedTransfer& trained : trained_.transfers) {
      if (decoding_.decoded_value[trained.value] != value || trained.to_mesh != mesh) continue;
      const MeshShape& shape = plan_.meshes[mesh].shape;
      transfer.layout = as_here(value, trained.value, trained.layout, shape).value_or(whole);
      transfer.in_segments.forward =
          as_here(value, trained.value, trained.in_segments.forward, shape).value_or(whole);
      transfer.in_segments.backward = transfer.in_segments.forward;
    }
    return transfer;
  }

  const Plan& trained_;
  const Graph& training_;
  const DecodingGraph& decoding_;
  const Graph& graph_;
  const GraphUses training_uses_;
  const Placement training_placement_;
  Plan plan_;
};

}  // namespace

Plan decoding_plan(const Plan& trained, const Graph& training, const DecodingGraph& decoding) {
  if (trained.has_states_at_servers())
    throw Error(ErrorKind::input, "text cannot be sampled under a plan whose states are at servers",
                "a plan of the same model without --servers: it takes the same checkpoints");
  return in_step("splitting the decoding of the model as the plan splits its training",
                 [&] { return DecodingPlan(trained, training, decoding).run(); });
}

std::int64_t sample_shares(const Plan& trained, const Graph& training) {
  std::int64_t most = 1;
  for (const StagePlan& stage : trained.stages) {
    const MeshShape& mesh = trained.meshes[stage.mesh].shape;
    for (const Node& node : training.nodes) {
      if (node.phase != Phase::forward || node.layer < stage.first_layer || node.layer >= stage.end_layer)
        continue;
      for (const ValueIndex result : node.results) {
        const Shape& shape = value_of(training, result).type.shape;
        if (shape.empty() || shape[0] != training.samples) continue;
        std::int64_t shares = 1;
        for (const int axis : trained.value_layout[result].axes[0])
          shares *= mesh[static_cast<std::size_t>(axis)];
        most = std::max(most, shares);
      }
    }
  }
  return most;
}

}  // namespace alpa
