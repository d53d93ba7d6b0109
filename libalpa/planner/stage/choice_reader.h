#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/plan/plan.h"
#include "libalpa/planner/stage/mesh_costs.h"
#include "libalpa/planner/stage/planning_graph.h"
#include "libalpa/planner/stage/stage_request.h"
#include "libalpa/planner/stage/stage_variables.h"

namespace alpa {

/// One stage's strategies, what they cost, and what memory they take beside messages and what packing loses.
struct StageSolution {
  bool feasible = false;
  std::string why_not;            ///< where it is not
  std::int64_t least_memory = 0;  ///< where memory is why: what it would need at least
  std::map<NodeIndex, Strategy> node_strategy;
  std::map<ValueIndex, ShardingSpec> value_layout;
  std::map<ValueIndex, ShardingSpec> received_layout;    ///< values made elsewhere -> layout they arrive in
  std::map<ValueIndex, SegmentLayouts> segment_layouts;  ///< of both, and of inputs
  double micro_batch_s = 0;                              ///< forward and backward of one micro-batch
  double update_s = 0;                                   ///< once per step
  double step_s = 0;                                     ///< micro-batches * micro_batch_s + update_s
  double lower_bound_s = 0;                              ///< on weighed_s of any choice, feasible or not
  bool hit_time_limit = false;
  bool is_solved = false;              ///< by solve_stage, for the same request; else it is a start
  std::int64_t resident_bytes = 0;     ///< most at once of all that does not grow with those in flight
  std::int64_t lasting_bytes = 0;      ///< of these, what is there all the time
  std::int64_t micro_batch_bytes = 0;  ///< activations of one micro-batch in flight
};

/// What a layer takes of the stage that it is part of.
struct LayerCosts {
  double micro_batch_s = 0, update_s = 0;  ///< as of the stage
  std::int64_t resident_bytes = 0;         ///< all the time
  std::int64_t micro_batch_bytes = 0;      ///< for each micro-batch in flight
  std::int64_t working_bytes = 0;          ///< most at once beside those, while it runs

  LayerCosts operator/(int copies) const {
    return {micro_batch_s / copies, update_s / copies, resident_bytes / copies, micro_batch_bytes / copies,
            working_bytes};
  }
};

/// Reads what is chosen for every variable of a stage as strategies, layouts and times, and the other way.
class ChoiceReader {
 public:
  /// Keeps references.
  ChoiceReader(const StageRequest& request, const StageScope& scope, const MeshCosts& mesh_costs,
               const StageVariables& stage)
      : request_(request), scope_(scope), mesh_costs_(mesh_costs), stage_(stage) {}

  /// All but its memory.
  StageSolution solution_of(const std::vector<int>& choice) const;
  /// Strategies and layouts of what stands for all that are equal to it.
  StageSolution folded_solution_of(const std::vector<int>& choice) const;
  /// The choices that make this solution; empty where the stage lacks one of them.
  std::vector<int> choice_of(const StageSolution&) const;

  /// Seconds of a variable's choice that do not grow with the micro-batches.
  double cost_once(const StageVariable&, std::size_t choice) const;
  /// The layer that a variable belongs to: that of its node, of what makes its value, or of the first that
  /// uses it. Of equal layers the one that stands for all.
  int layer_of(const StageVariable&) const;
  /// [layer of the stage] Of a choice for every variable, without `working_bytes`. What goes from one layer
  /// to another is the other's.
  std::vector<LayerCosts> layer_costs(const std::vector<int>& choice) const;
  /// [layer of the stage] Of what is counted at the first of equal layers for all of them, an equal share
  /// each.
  template <class Costs>
  std::vector<Costs> shared_by_copies(const std::vector<Costs>& of_all) const {
    const auto place = [&](std::size_t layer) {
      return scope_.canonical_layer(request_.first_layer + static_cast<int>(layer)) - request_.first_layer;
    };
    std::vector<int> copies(of_all.size(), 0);
    for (std::size_t layer = 0; layer < of_all.size(); ++layer) ++copies[place(layer)];
    std::vector<Costs> shares;
    for (std::size_t layer = 0; layer < of_all.size(); ++layer)
      shares.push_back(of_all[place(layer)] / copies[place(layer)]);
    return shares;
  }

 private:
  const StageVariable& variable(int index) const { return stage_.variables[index]; }

  /// Of a solution, at rest or in a segment; none: it has none.
  std::optional<ShardingSpec> layout_in(const StageSolution&, ValueIndex value,
                                        std::optional<Phase> segment) const;
  ShardingSpec layout_at_node(NodeIndex node, ValueIndex value, bool result,
                              const std::vector<int>& choice) const;
  ShardingSpec resting_layout(ValueIndex value, const std::vector<int>& choice) const;
  SegmentLayouts segment_layouts(ValueIndex value, const std::vector<int>& choice) const;
  StageSolution solution_of(const std::vector<NodeIndex>&, const std::vector<ValueIndex>&,
                            const std::vector<int>& choice) const;
  double seconds(const std::vector<int>& choice, bool update) const;

  const StageRequest& request_;
  const StageScope& scope_;
  const MeshCosts& mesh_costs_;
  const StageVariables& stage_;
};

}  // namespace alpa
