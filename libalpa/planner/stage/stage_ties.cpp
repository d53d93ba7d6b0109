#include "libalpa/planner/stage/stage_ties.h"

#include <set>
#include <tuple>

namespace alpa {
namespace {

/// What each choice of a variable says of the axes.
struct TieSide {
  int variable = -1;
  int layer = 0;                   ///< that it belongs to
  std::vector<AxisSet> axes = {};  ///< [choice]
};

class TieBuilder {
 public:
  TieBuilder(const StageScope& scope, const MeshCosts& mesh_costs, const StageVariables& built)
      : scope_(scope), mesh_costs_(mesh_costs), built_(built) {}

  std::vector<StageTie> build() {
    for (const ValueIndex v : scope_.values()) {
      const StateIndex s = scope_.planning().uses.state_at[v];
      if (s < 0 || !scope_.graph().states[s].is_parameter || !scope_.updates(v)) continue;
      const State& parameter = scope_.graph().states[s];
      keep_to_level(parameter);
      if (const auto way = limits().ways.find(v); way != limits().ways.end())
        keep_to_way(parameter, way->second);
    }
    return std::move(ties_);
  }

 private:
  const StageLimits& limits() const { return scope_.planning().limits; }

  template <class AxesOf>
  TieSide side_of_node(NodeIndex n, const AxesOf& axes_of) const {
    TieSide side{built_.of_node.at(scope_.canonical_node(n)), scope_.node(n).layer};
    const StageVariable& variable = built_.variables[side.variable];
    for (std::size_t c = 0; c < variable.choices.size(); ++c)
      side.axes.push_back(axes_of(option_of(variable, c, mesh_costs_)));
    return side;
  }

  TieSide operand(NodeIndex n, int place) const {
    const LayoutTable& table = mesh_costs_.layouts(scope_.node(n).operands[place]);
    return side_of_node(n,
                        [&](const NodeOption& o) { return splitting_axes(table.spec(o.operands[place])); });
  }
  TieSide operand(NodeIndex n, ValueIndex value) const {
    return operand(n, place_of(scope_.node(n).operands, value));
  }
  TieSide result(NodeIndex n, int place = 0) const {
    const LayoutTable& table = mesh_costs_.layouts(scope_.node(n).results[place]);
    return side_of_node(n, [&](const NodeOption& o) { return splitting_axes(table.spec(o.results[place])); });
  }
  TieSide terms(NodeIndex n, int place = 0) const {
    const LayoutTable& table = mesh_costs_.layouts(scope_.node(n).results[place]);
    return side_of_node(n, [&](const NodeOption& o) { return table.spec(o.results[place]).partial_sum; });
  }
  TieSide repeated(NodeIndex n) const {
    return side_of_node(n, [](const NodeOption& o) { return repeated_axes(o.strategy); });
  }
  /// Where a value rests, or, where that is as it is made, of its maker.
  TieSide at_rest(ValueIndex v) const {
    const auto resting = built_.of_value.find(scope_.canonical_value(v));
    if (resting == built_.of_value.end())
      return result(scope_.value(v).producer, place_of(scope_.node(scope_.value(v).producer).results, v));
    TieSide side{resting->second, scope_.home_layer(v)};
    for (const int layout : built_.variables[side.variable].choices)
      side.axes.push_back(splitting_axes(mesh_costs_.layouts(v).spec(layout)));
    return side;
  }

  void tie(const TieSide& from, const WayRule& rule, const TieSide& to) {
    if (!known_.insert({from.variable, to.variable, from.axes, rule.are_among, to.axes}).second) return;
    StageTie tie{from.variable, to.variable, {}, from.layer == to.layer};
    for (const AxisSet these : from.axes)
      for (const AxisSet those : to.axes) tie.allowed.push_back(rule.allows(these, those));
    ties_.push_back(std::move(tie));
  }

  void keep_to_level(const State& parameter) {
    const int most = limits().most_zero;
    const TieSide resting = at_rest(parameter.value);
    constexpr WayRule among_those_at_rest{WayAxes::summed, true, WayAxes::resting};
    if (most <= 2)
      for (const Phase segment : {Phase::forward, Phase::backward})
        for (const auto& [user, place] : scope_.uses_in(parameter.value, segment))
          tie(resting, among_those_at_rest, operand(user, place));
    if (most > 1) return;
    const UpdateSources sources = update_sources(scope_.planning().uses, parameter);
    for (const NodeIndex sum : sources.sums)
      if (scope_.has(sum)) tie(result(sum), among_those_at_rest, resting);
    if (most > 0) return;
    for (const StateIndex s : sources.states) {
      const ValueIndex next = scope_.graph().states[s].next;
      if (next < 0 || !scope_.makes(next)) continue;
      const NodeIndex update = scope_.value(next).producer;
      tie(result(update, place_of(scope_.node(update).results, next)), among_those_at_rest, resting);
    }
  }

  std::vector<TieSide> sides(WayAxes axes, const State& parameter, const GradientPath& path) const {
    switch (axes) {
      case WayAxes::terms:
        return {terms(path.maker, path.result)};
      case WayAxes::repeated:
        return {repeated(path.maker)};
      case WayAxes::factors: {
        std::vector<TieSide> factors;
        for (const ValueIndex v : scope_.node(path.maker).operands) factors.push_back(at_rest(v));
        return factors;
      }
      case WayAxes::none:
        return {side_of_node(path.summing, [](const NodeOption&) { return AxisSet{0}; })};
      case WayAxes::passed:
        return {terms(path.summing)};
      case WayAxes::summed:
        return {result(path.summing)};
      case WayAxes::updated:
        return {operand(path.update, path.sum(scope_.graph()))};
      case WayAxes::resting:
        return {at_rest(parameter.value)};
    }
    return {};
  }

  void keep_to_way(const State& parameter, SyncWay way) {
    const std::optional<GradientPath> path = gradient_path(scope_.planning().uses, parameter);
    if (!path || !scope_.has(path->maker)) return;
    for (const WayRule& rule : way_rules(way))
      for (const TieSide& these : sides(rule.axes, parameter, *path))
        for (const TieSide& those : sides(rule.others, parameter, *path)) tie(these, rule, those);
  }

  const StageScope& scope_;
  const MeshCosts& mesh_costs_;
  const StageVariables& built_;
  /// Variables, and what of them.
  std::set<std::tuple<int, int, std::vector<AxisSet>, bool, std::vector<AxisSet>>> known_;
  std::vector<StageTie> ties_;
};

}  // namespace

std::vector<StageTie> limit_ties(const StageScope& scope, const MeshCosts& mesh_costs,
                                 const StageVariables& built) {
  const StageLimits& limits = scope.planning().limits;
  if (limits.most_zero >= 3 && limits.ways.empty()) return {};
  return TieBuilder(scope, mesh_costs, built).build();
}

}  // namespace alpa
