#include "libalpa/planner/stage/stage_ties.h"

#include <functional>
#include <set>
#include <tuple>

namespace alpa {
namespace {

class TieBuilder {
 public:
  TieBuilder(const StageScope& scope, const MeshCosts& mesh_costs, const StageVariables& built)
      : scope_(scope), mesh_costs_(mesh_costs), built_(built) {}

  std::vector<StageTie> build() {
    for (const ValueIndex v : scope_.values()) {
      const StateIndex s = scope_.planning().uses.state_at[v];
      if (s >= 0 && scope_.graph().states[s].is_parameter && scope_.updates(v)) tie(scope_.graph().states[s]);
    }
    return std::move(ties_);
  }

 private:
  /// An operand or a result of a node.
  struct End {
    NodeIndex node;
    int place = 0;
    bool is_result = true;
  };

  void tie(const State& parameter) {
    const int most = scope_.planning().limits.most_zero;
    if (most <= 2)
      for (const Phase segment : {Phase::forward, Phase::backward})
        for (const auto& [user, operand] : scope_.uses_in(parameter.value, segment))
          add(parameter, {user, operand, false});
    if (most > 1) return;
    const UpdateSources sources = update_sources(scope_.planning().uses, parameter);
    for (const NodeIndex sum : sources.sums)
      if (scope_.has(sum)) add(parameter, {sum});
    if (most > 0) return;
    for (const StateIndex s : sources.states) {
      const ValueIndex next = scope_.graph().states[s].next;
      if (next < 0 || !scope_.makes(next)) continue;
      const NodeIndex update = scope_.value(next).producer;
      add(parameter, {update, place_of(scope_.node(update).results, next)});
    }
  }

  /// A use has the axes of the parameter at rest, which has those of sums and states.
  void add(const State& parameter, const End& end) {
    const int rest = built_.of_value.at(scope_.canonical_value(parameter.value));
    const int node = built_.of_node.at(scope_.canonical_node(end.node));
    if (!known_.insert({rest, node, end.place, end.is_result}).second) return;
    const StageVariable &resting = built_.variables[rest], &other = built_.variables[node];
    const auto place = static_cast<std::size_t>(end.place);
    const ValueIndex v = end.is_result ? scope_.node(end.node).results[place] : parameter.value;
    StageTie tie{rest, node, {}, scope_.node(end.node).layer == scope_.home_layer(parameter.value)};
    for (const int layout : resting.choices) {
      const ShardingSpec& of_parameter = mesh_costs_.layouts(parameter.value).spec(layout);
      for (std::size_t c = 0; c < other.choices.size(); ++c) {
        const NodeOption& option = option_of(other, c, mesh_costs_);
        const ShardingSpec& spec =
            mesh_costs_.layouts(v).spec((end.is_result ? option.results : option.operands)[place]);
        tie.allowed.push_back(end.is_result ? is_split_within(spec, of_parameter)
                                            : is_split_within(of_parameter, spec));
      }
    }
    ties_.push_back(std::move(tie));
  }

  const StageScope& scope_;
  const MeshCosts& mesh_costs_;
  const StageVariables& built_;
  std::set<std::tuple<int, int, int, bool>> known_;  ///< variables, and where at the node
  std::vector<StageTie> ties_;
};

}  // namespace

std::vector<StageTie> state_sharding_ties(const StageScope& scope, const MeshCosts& mesh_costs,
                                          const StageVariables& built) {
  if (scope.planning().limits.most_zero >= 3) return {};
  return TieBuilder(scope, mesh_costs, built).build();
}

}  // namespace alpa
