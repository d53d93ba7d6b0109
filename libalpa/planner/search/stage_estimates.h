#pragma once
#include <functional>
#include <map>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/layer_sums.h"
#include "libalpa/planner/search/stage_choices.h"
#include "libalpa/planner/search/stage_templates.h"

namespace alpa {

/// Which templates a stage's layers are parts of: its first ones, computed again in the backward, of one, all
/// others, which keep what they made, of another.
struct TemplateMix {
  int recomputing = -1, keeping = -1;  ///< indices of templates on one mesh; -1: no layers are run so
  int recomputed_layers = 0;
};

/// What stages take before any is solved: parts of templates, what arrives over their borders, and bounds.
class StageEstimates {
 public:
  /// Keeps references to the graph and the costs.
  StageEstimates(const PlanningGraph&, const CostModel&, int micro_batches);

  /// `all`: as of TemplatePart.
  void add(const StageTemplate&, const StageScope& all);
  void add(const StageBound&);

  const std::vector<StageTemplate>& templates() const { return templates_; }

  /// All ways to run the layers on a mesh, one after another: seconds without what arrives, and how many
  /// micro-batches in flight memory allows; 0: none.
  void for_each_way(const MeshShape&, int first_layer, int end_layer,
                    const std::function<void(const StageWay&)>&) const;
  TemplateMix mix_of(int id) const;  ///< of such a way

  /// What it takes about to get from other stages what these layers need of them.
  StageSeconds arrivals(int devices, int first_layer, int end_layer, const StageSides&) const;
  /// What it takes at least, in each micro-batch.
  struct LeastArrivals {
    double before_s = 0, behind_s = 0;
  };
  LeastArrivals least_arrivals(int devices, int first_layer, int end_layer, const StageSides&) const;

  /// What layers run in such a way hold all the time, with so many micro-batches in flight.
  double lasting_bytes(int way, int first_layer, int end_layer, int in_flight) const;
  /// What a template needs for these layers with one micro-batch in flight, about.
  std::int64_t least_memory(int of_template, int first_layer, int end_layer) const;

  /// Of these layers on that mesh with so many of them recomputed: no choice takes less with which as many
  /// micro-batches in flight fit into memory.
  struct Least {
    double step_s = infinity, micro_batch_s = infinity;  ///< infinity: they cannot be run so
    double weighed_s = infinity;                         ///< of all micro-batches and kUpdateTimes updates
  };
  Least least(const MeshShape&, RecomputeForm, int recomputed_layers, int first_layer, int end_layer,
              int in_flight) const;

 private:
  struct Prefix {
    LayerSums micro_batch_s, update_s, resident, per_micro_batch;
    std::vector<double> shared_bytes;  ///< of shared_
  };
  /// At a price of memory.
  struct Bound {
    MemoryPrice price;
    struct Form {
      LayerSums step_s, runs_s, weighed_s;  ///< empty: not bounded
    };
    std::map<LayerForm, Form> forms;  ///< of layers that are run so
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
  double arrival_s(double bytes, int devices, bool is_apart) const;
  double least(LayerSums Bound::Form::*, const std::vector<Bound>&, RecomputeForm, int recomputed_layers,
               int first_layer, int end_layer, int in_flight) const;
  /// With the most that layers work in at once.
  StageWay estimate(const TemplateMix&, int first_layer, int end_layer, double working_bytes) const;
  int id_of(const TemplateMix&) const;
  double working_bytes(int of_template, int first_layer, int end_layer) const;
  /// Bytes that do not grow with those in flight, but what layers work in.
  double resident_bytes(const TemplateMix&, int first_layer, int end_layer) const;
  /// Of what the layers take, in either form.
  double sum(LayerSums Prefix::*, const TemplateMix&, int first_layer, int end_layer) const;

  const PlanningGraph& planning_;
  const CostModel& costs_;
  int micro_batches_;
  std::vector<StageTemplate> templates_;
  std::vector<Prefix> prefixes_;                    ///< of templates
  std::map<MeshShape, std::vector<Bound>> bounds_;  ///< at several prices
  std::map<MeshShape, std::vector<int>> of_mesh_;   ///< templates
  /// [layer] Bytes of whole values that cross into it, and back out of it, in each micro-batch, and once.
  std::vector<double> forward_bytes_, backward_bytes_, once_bytes_;
  /// [layer] Of those of each micro-batch, what it takes itself, from any layer before and from any behind.
  std::vector<double> taken_from_before_, taken_from_behind_;
  /// [layer] Of whole values that go from layers before to that one and later ones, and are kept only where
  /// these compute their forward again.
  std::vector<double> kept_for_recomputing_;
  std::vector<Shared> shared_;
};

}  // namespace alpa
