#include "libalpa/planner/search/met_constraints.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/dimension_roles.h"
#include "libalpa/plan/placement.h"
#include "libalpa/planner/search/constrained_space.h"

namespace alpa {
namespace {

class FinishedPlan {
 public:
  FinishedPlan(const Plan& plan, const Graph& graph)
      : plan_(plan), graph_(graph), uses_(graph), placement_(plan, uses_) {}

  bool meets(const MostTensorParallel& most) {
    const std::vector<ShardingRule> rules = node_rules(graph_);
    const std::vector<std::vector<FactorRole>> roles = factor_roles(graph_, rules);
    for (const NodeIndex n : graph_.nodes.indices()) {
      const Node& node = graph_.nodes[n];
      if (node.phase == Phase::update || node.op->sums_micro_batches) continue;
      const MeshShape& mesh = plan_.meshes[placement_.mesh_of_node(n)].shape;
      std::int64_t devices = 1;
      for (std::size_t axis = 0; axis < mesh.size(); ++axis)
        if (const int factor = plan_.node_strategy[n][axis]; factor >= 0)
          if (roles[n][factor] == FactorRole::other) devices *= mesh[axis];
      if (devices > most.devices) return false;
    }
    return true;
  }

  bool meets(const MostZero& most) {
    for (const State& state : graph_.states) {
      if (!state.is_parameter) continue;
      if (most.level < 3 && is_gathered(state)) return false;
      const MeshIndex mesh = placement_.mesh_of_value(state.value);
      const UpdateSources sources = update_sources(uses_, state);
      for (const NodeIndex sum : sources.sums)
        if (most.level < 2 && placement_.mesh_of_node(sum) == mesh &&
            is_split_beyond(state, placement_.node_layout(sum).results.front()))
          return false;
      for (const StateIndex s : sources.states)
        if (most.level < 1 && is_split_beyond(state, plan_.value_layout[graph_.states[s].value]))
          return false;
    }
    return true;
  }

  bool meets(const StageCount& count) {
    return std::ssize(plan_.stages) >= count.least && std::ssize(plan_.stages) <= count.most;
  }
  bool meets(const MicroBatchCounts& counts) {
    return std::ranges::count(counts.allowed, plan_.micro_batches) > 0;
  }
  bool meets(const Recomputation& of) {
    return std::ranges::all_of(plan_.stages, [&](const StagePlan& stage) {
      return of.of_all ? stage.recomputed_layers == stage.end_layer - stage.first_layer &&
                             stage.recompute_form == *of.of_all
                       : stage.recomputed_layers == 0 || stage.offloads();
    });
  }
  bool meets(const ScheduleOf& schedule) {
    return plan_.schedule == schedule.name || plan_.stages.size() == 1;  // which has no order to choose
  }

  bool meets(const TensorSplit& tensor) {
    const auto is_so = [&](const ShardingSpec& spec) {
      for (int d = 0; d < std::ssize(spec.axes); ++d)
        if (!spec.axes[static_cast<std::size_t>(d)].empty() != (d == tensor.dimension)) return false;
      return true;
    };
    for (const auto& [name, v] : named_tensors(graph_)) {
      if (!matches(tensor.pattern, name)) continue;
      if (!is_so(plan_.value_layout[v])) return false;
      const NodeIndex maker = graph_.values[v].producer;
      if (maker < 0) continue;
      const SegmentLayouts& used = plan_.segment_layouts[v];
      if (!is_so(placement_.node_layout(maker).results.front()) || !is_so(used.forward) ||
          !is_so(used.backward))
        return false;
    }
    return true;
  }

  bool meets(const StageBoundary& boundary) {
    const int cut = cut_of(boundary, graph_);
    return std::ranges::none_of(plan_.stages, [&](const StagePlan& stage) {
      return stage.first_layer < cut && cut < stage.end_layer;
    });
  }
  bool meets(const LayersTogether& together) {
    const auto [first, last] = layers_of(together, graph_);
    return stage_of_layer(plan_, first) == stage_of_layer(plan_, last);
  }
  bool meets(const DevicesApart& apart) {
    return std::ranges::none_of(plan_.meshes, [&](const DeviceMesh& mesh) {
      const int first = mesh.first_device, end = first + device_count(mesh.shape);
      return first <= apart.one && apart.one < end && first <= apart.other && apart.other < end;
    });
  }

  bool meets(const GradientWay& gradient) {
    for (const State& state : graph_.states) {
      if (!state.is_parameter || !matches(gradient.pattern, state.name)) continue;
      const std::optional<GradientPath> path = gradient_path(uses_, state);
      if (path && !std::ranges::all_of(way_rules(gradient.way), [&](const WayRule& rule) {
            return rule.allows(axes_of(rule.axes, state, *path), axes_of(rule.others, state, *path));
          }))
        return false;
    }
    return true;
  }
  bool meets(const OptionWord&) { return true; }  // plans are made by these, where they can be so

 private:
  AxisSet axes_of(WayAxes axes, const State& parameter, const GradientPath& path) const {
    switch (axes) {
      case WayAxes::terms:
        return placement_.node_layout(path.maker).results[path.result].partial_sum;
      case WayAxes::repeated:
        return repeated_axes(plan_.node_strategy[path.maker]);
      case WayAxes::factors: {
        AxisSet split = 0;
        for (const ValueIndex v : node_of(graph_, path.maker).operands)
          split |= splitting_axes(placement_.layout_at_rest(v, placement_.mesh_of_node(path.maker)));
        return split;
      }
      case WayAxes::none:
        return 0;
      case WayAxes::passed:
        return placement_.node_layout(path.summing).results[0].partial_sum;
      case WayAxes::summed:
        return splitting_axes(placement_.node_layout(path.summing).results[0]);
      case WayAxes::updated: {
        const std::vector<ValueIndex>& operands = node_of(graph_, path.update).operands;
        const auto at = std::ranges::find(operands, path.sum(graph_)) - operands.begin();
        return splitting_axes(placement_.node_layout(path.update).operands[at]);
      }
      case WayAxes::resting:
        return axes_at_rest(parameter);
    }
    return 0;
  }

  AxisSet axes_at_rest(const State& parameter) const {
    return splitting_axes(plan_.value_layout[parameter.value]);
  }

  /// Whether somebody where it is updated takes it whole along an axis that it rests split along.
  bool is_gathered(const State& parameter) const {
    const AxisSet at_rest = axes_at_rest(parameter);
    for (const NodeIndex n : uses_.users_of(parameter.value)) {
      const Node& node = graph_.nodes[n];
      if (node.phase == Phase::update ||
          placement_.mesh_of_node(n) != placement_.mesh_of_value(parameter.value))
        continue;
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        if (node.operands[i] == parameter.value &&
            (at_rest & ~splitting_axes(placement_.node_layout(n).operands[i])) != 0)
          return true;
    }
    return false;
  }

  /// Whether a layout on the parameter's mesh is split along an axis that the parameter is not.
  bool is_split_beyond(const State& parameter, const ShardingSpec& spec) const {
    return (splitting_axes(spec) & ~axes_at_rest(parameter)) != 0;
  }

  const Plan& plan_;
  const Graph& graph_;
  const GraphUses uses_;
  const Placement placement_;
};

}  // namespace

std::vector<const PlanConstraint*> unmet_constraints(const PlanConstraints& constraints, const Plan& plan,
                                                     const Graph& graph) {
  std::vector<const PlanConstraint*> unmet;
  if (constraints.empty()) return unmet;
  FinishedPlan finished(plan, graph);
  for (const PlanConstraint& constraint : constraints.all)
    if (!std::visit([&](const auto& demand) { return finished.meets(demand); }, constraint.demand))
      unmet.push_back(&constraint);
  return unmet;
}

void require_met(const PlanConstraints& constraints, const Plan& plan, const Graph& graph) {
  const std::vector<const PlanConstraint*> unmet = unmet_constraints(constraints, plan, graph);
  if (!unmet.empty())
    throw Error(ErrorKind::input,
                fmt::format("it violates {} ({})", constraint_text(*unmet.front()), unmet.front()->where));
}

}  // namespace alpa
