#pragma once
#include <map>
#include <vector>

#include "libalpa/planner/search/layer_sums.h"
#include "libalpa/planner/search/stage_partition.h"
#include "libalpa/planner/search/stage_templates.h"

namespace alpa {

/// What stages take before any is solved: parts of templates, with what goes over their borders, and bounds.
class StageEstimates {
 public:
  /// Keeps references to the graph and the costs. `is_apart`: as of StageRequest.
  StageEstimates(const PlanningGraph&, const CostModel&, int micro_batches, bool is_apart);

  /// `all`: as of part_of.
  void add(const StageTemplate&, const StageScope& all);
  void add(const StageBound&);

  const std::vector<StageTemplate>& templates() const { return templates_; }

  /// The layers run by a template: its seconds, and how many micro-batches in flight memory allows; 0: none.
  StageWay estimate(int of_template, int first_layer, int end_layer) const;

  /// What a template needs for these layers with one micro-batch in flight, about.
  std::int64_t least_memory(int of_template, int first_layer, int end_layer) const;

  /// On the step of these layers on that mesh in that way: no choice that fits into memory takes less.
  double least_step_s(const MeshShape&, bool rematerialize, int first_layer, int end_layer) const;

 private:
  struct Prefix {
    LayerSums micro_batch_s, update_s, resident, per_micro_batch;
    std::vector<double> shared_bytes;  ///< of shared_
  };
  struct Bound {
    double free_s = 0;  ///< what the solver left, and what the price makes of all memory
    LayerSums layers_s;
  };
  /// A state that layers beside its own use.
  struct Shared {
    StateIndex state;
    int home = 0;
    std::vector<int> users;  ///< layers
  };

  void add_crossings();
  void find_shared_states();
  Prefix prefix_of(const StageTemplate&, const StageScope& all) const;
  double arrival_s(double bytes, int devices) const;
  /// Bytes that do not grow with those in flight.
  double resident_bytes(int of_template, int first_layer, int end_layer) const;

  const PlanningGraph& planning_;
  const CostModel& costs_;
  int micro_batches_;
  bool is_apart_;
  std::vector<StageTemplate> templates_;
  std::vector<Prefix> prefixes_;                                    ///< of templates
  std::map<std::pair<MeshShape, bool>, std::vector<Bound>> bound_;  ///< at several prices
  /// [layer] Bytes of whole values that cross into it, and back out of it, in each micro-batch, and once.
  std::vector<double> forward_bytes_, backward_bytes_, once_bytes_;
  std::vector<Shared> shared_;
};

}  // namespace alpa
