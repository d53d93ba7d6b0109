#include "libalpa/planner/tuning/sync_ways.h"

#include <algorithm>
#include <optional>

#include "libalpa/plan/reduced_gradients.h"

namespace alpa {
namespace {

/// The first strategy that does the same along all of these axes, what `strategy` does along the others, and
/// is as asked; nullopt: there is none.
template <class IsAsAsked>
std::optional<Strategy> strategy_along(const Graph& graph, NodeIndex n, const Strategy& strategy,
                                       const std::vector<int>& axes, const MeshShape& mesh,
                                       const IsAsAsked& is_as_asked) {
  const Node& node = node_of(graph, n);
  const std::vector<TensorType> types = operand_types(graph, node);
  const OpCall call{types, node.attributes};
  for (const Strategy& each : strategies(*node.op, call, mesh)) {
    bool is_alike = true;
    for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis)
      is_alike = is_alike && (std::ranges::count(axes, axis) > 0 ? each[axis] == each[axes[0]]
                                                                 : each[axis] == strategy[axis]);
    if (is_alike && is_as_asked(each, layout_of(*node.op, call, each, mesh))) return each;
  }
  return std::nullopt;
}

bool splits_dimension(const ShardingSpec& spec, int dimension, const std::vector<int>& axes) {
  return std::ranges::all_of(axes,
                             [&](int axis) { return std::ranges::count(spec.axes[dimension], axis) > 0; });
}

Strategy with_axes(Strategy strategy, const std::vector<int>& axes, int does) {
  for (const int axis : axes) strategy[axis] = does;
  return strategy;
}

/// Whole along these axes.
ShardingSpec gathered(ShardingSpec spec, const std::vector<int>& axes) {
  for (std::vector<int>& of_dimension : spec.axes)
    std::erase_if(of_dimension, [&](int axis) { return std::ranges::count(axes, axis) > 0; });
  return spec;
}

/// Finds what is said of one parameter in SyncVariable.
class VariableFinder {
 public:
  VariableFinder(const Placement& placement, StateIndex parameter)
      : placement_(placement), graph_(placement.graph()), state_(graph_.states[parameter]) {
    found_.parameter = parameter;
  }

  /// All but its ways.
  std::optional<SyncVariable> find() {
    if (!find_nodes() || !find_axes()) return std::nullopt;
    found_.has_factors = found_.has_factors && is_updated_in_one_step_or_whole();
    if (is_updated_in_one_step()) find_dimension();
    return found_;
  }

 private:
  const Strategy& strategy_of(NodeIndex n) const { return placement_.plan().node_strategy[n]; }
  const MeshShape& shape() const { return placement_.plan().meshes[found_.mesh].shape; }
  ValueIndex sum() const { return found_.path.sum(graph_); }

  bool find_nodes() {
    const std::optional<GradientPath> path = gradient_path(placement_.uses(), state_);
    if (!path) return false;
    found_.path = *path;
    found_.mesh = placement_.mesh_of_node(path->update);
    const auto is_here = [&](NodeIndex n) { return placement_.mesh_of_node(n) == found_.mesh; };
    return is_here(path->maker) && is_summed_where_it_lies(placement_, found_.mesh, sum()) &&
           std::ranges::all_of(placement_.uses().users_of(state_.value), is_here) &&
           std::ranges::all_of(placement_.uses().users_of(sum()), is_here);
  }

  /// Along which each device makes a term of the gradient, or could.
  bool find_axes() {
    const Node& maker = node_of(graph_, found_.path.maker);
    const int result = found_.path.result;
    const auto is_term_along = [result](const NodeLayout& layout, int axis) {
      return (layout.results[result].partial_sum >> axis & 1) != 0;
    };
    found_.partial = strategy_of(found_.path.maker);
    std::vector<int> gathered_axes;
    for (int axis = 0; axis < static_cast<int>(shape().size()); ++axis) {
      if (is_term_along(placement_.node_layout(found_.path.maker), axis)) {
        found_.axes.push_back(axis);
      } else if (strategy_of(found_.path.maker)[axis] == kIdleAxis && maker.results.size() == 1) {
        // Of factors that were gathered: each could make a term of the samples that it has.
        const auto has_its_own = [&](const Strategy&, const NodeLayout& layout) {
          bool splits = false;
          for (std::size_t i = 0; i < maker.operands.size(); ++i) {
            const bool rests_split =
                splits_along(placement_.layout_at_rest(maker.operands[i], found_.mesh), axis);
            if (splits_along(layout.operands[i], axis) != rests_split) return false;
            splits = splits || rests_split;
          }
          return splits && is_term_along(layout, axis);
        };
        if (const auto own =
                strategy_along(graph_, found_.path.maker, found_.partial, {axis}, shape(), has_its_own)) {
          found_.partial = *own;
          found_.axes.push_back(axis);
          gathered_axes.push_back(axis);
        }
      }
    }
    found_.has_factors = found_.path.has_factors(graph_) && std::ranges::all_of(found_.axes, [&](int axis) {
                           return found_.partial[axis] >= 0;
                         });
    return !found_.axes.empty();
  }

  bool is_updated_in_one_step() const {
    return std::ranges::all_of(placement_.uses().users_of(sum()), [&](NodeIndex n) {
      return n == found_.path.update || node_of(graph_, n).op->reduces_globally;
    });
  }

  bool is_updated_in_one_step_or_whole() const {
    const Strategy& strategy = strategy_of(found_.path.update);
    return is_updated_in_one_step() ||
           std::ranges::all_of(found_.axes, [&](int axis) { return strategy[axis] == kIdleAxis; });
  }

  /// The first that update and sum can split: what lies outermost needs no packing.
  void find_dimension() {
    const auto at = std::ranges::find(node_of(graph_, found_.path.update).operands, sum()) -
                    node_of(graph_, found_.path.update).operands.begin();
    const int rank = static_cast<int>(value_of(graph_, state_.value).type.shape.size());
    for (int d = 0; d < rank && found_.dimension < 0; ++d) {
      const auto splits = [&](std::size_t operand) {
        return [this, operand, d](const Strategy&, const NodeLayout& layout) {
          return splits_dimension(layout.operands[operand], d, found_.axes);
        };
      };
      if (strategy_along(graph_, found_.path.update, strategy_of(found_.path.update), found_.axes, shape(),
                         splits(static_cast<std::size_t>(at))) &&
          strategy_along(graph_, found_.path.summing, strategy_of(found_.path.summing), found_.axes, shape(),
                         splits(0)))
        found_.dimension = d;
    }
  }

  const Placement& placement_;
  const Graph& graph_;
  const State& state_;
  SyncVariable found_;
};

}  // namespace

SyncWays::SyncWays(const Plan& plan, const GraphUses& uses) : plan_(plan), uses_(uses) {
  plan_.sync.clear();
  const Placement placement(plan_, uses_);
  for (const StateIndex s : uses_.graph.states.indices()) {
    if (!uses_.graph.states[s].is_parameter) continue;
    std::optional<SyncVariable> found = VariableFinder(placement, s).find();
    if (!found) continue;
    std::vector<SyncWay> ways{SyncWay::all_reduce};
    if (found->dimension >= 0)
      ways.insert(ways.end(),
                  {SyncWay::sharded_update, SyncWay::sharded_gradient, SyncWay::sharded_parameter});
    if (found->has_factors) ways.push_back(SyncWay::factors);
    const auto planned = std::ranges::find_if(ways, [&](SyncWay way) {
      Plan other = plan_;
      set(other, *found, way);
      return other == plan_;
    });
    if (planned == ways.end())
      ways.insert(ways.begin(), SyncWay::as_planned);
    else
      std::rotate(ways.begin(), planned, planned + 1);
    found->ways = std::move(ways);
    variables_.push_back(std::move(*found));
  }
}

void SyncWays::set(Plan& plan, const SyncVariable& variable, SyncWay way) const {
  const Graph& graph = uses_.graph;
  const State& parameter = graph.states[variable.parameter];
  const Node &summing = node_of(graph, variable.path.summing), &update = node_of(graph, variable.path.update);
  const ValueIndex gradient = variable.path.gradient(graph), sum = variable.path.sum(graph);
  if (way == SyncWay::as_planned) {
    for (const NodeIndex n : {variable.path.maker, variable.path.summing, variable.path.update})
      plan.node_strategy[n] = plan_.node_strategy[n];
    const auto take_back = [&](ValueIndex v) {
      plan.value_layout[v] = plan_.value_layout[v];
      plan.segment_layouts[v] = plan_.segment_layouts[v];
    };
    take_back(gradient), take_back(sum);
    for (const ValueIndex result : update.results) take_back(result);
    for (const ValueIndex operand : update.operands)
      if (uses_.state_at[operand] >= 0) take_back(operand);
    return;
  }
  const bool shards = way != SyncWay::all_reduce && way != SyncWay::factors;
  const MeshShape& mesh = plan.meshes[variable.mesh].shape;
  const std::vector<int>& axes = variable.axes;
  const auto split_along = [&](NodeIndex n, ValueIndex operand) {
    const auto at =
        std::ranges::find(node_of(graph, n).operands, operand) - node_of(graph, n).operands.begin();
    return *strategy_along(graph, n, plan_.node_strategy[n], axes, mesh,
                           [&](const Strategy&, const NodeLayout& layout) {
                             return splits_dimension(layout.operands[at], variable.dimension, axes);
                           });
  };
  plan.node_strategy[variable.path.maker] =
      way == SyncWay::factors ? with_axes(variable.partial, axes, kIdleAxis) : variable.partial;
  plan.node_strategy[variable.path.summing] =
      way == SyncWay::sharded_gradient || way == SyncWay::sharded_parameter
          ? split_along(variable.path.summing, gradient)
          : with_axes(plan_.node_strategy[variable.path.summing], axes,
                      way == SyncWay::factors ? kIdleAxis : kPassPartialAxis);
  plan.node_strategy[variable.path.update] =
      shards ? split_along(variable.path.update, sum)
             : with_axes(plan_.node_strategy[variable.path.update], axes, kIdleAxis);

  const auto rests = [&](ValueIndex value, const ShardingSpec& layout) {
    plan.value_layout[value] = layout;
    plan.segment_layouts[value] = {layout, layout};
  };
  const auto layout = [&](const Node& node, NodeIndex n) {
    const std::vector<TensorType> types = operand_types(graph, node);
    return layout_of(*node.op, {types, node.attributes}, plan.node_strategy[n], mesh);
  };
  const NodeLayout sums = layout(summing, variable.path.summing),
                   updates = layout(update, variable.path.update);
  rests(gradient, sums.operands[0]);
  rests(sum, sums.results[0]);
  for (const ValueIndex operand : update.operands) {
    const StateIndex s = uses_.state_at[operand];
    if (s < 0 || graph.states[s].next < 0) continue;
    const auto result = std::ranges::find(update.results, graph.states[s].next) - update.results.begin();
    if (result == std::ssize(update.results)) continue;
    ShardingSpec at_rest = updates.results[result];
    const bool is_gathered = s == variable.parameter && way != SyncWay::sharded_parameter;
    if (is_gathered) at_rest = gathered(at_rest, axes);
    rests(graph.states[s].next, at_rest);
    rests(operand, at_rest);
  }
  // Where it rests split it is gathered once for each segment.
  const ShardingSpec whole = gathered(plan.value_layout[parameter.value], axes);
  plan.segment_layouts[parameter.value] = {whole, whole};
}

}  // namespace alpa
