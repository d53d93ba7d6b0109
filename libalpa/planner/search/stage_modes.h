#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/stage_estimates.h"
#include "libalpa/planner/search/stage_spans.h"

namespace alpa {

/// How a stage may be run, beside how its operators are split.
struct StageMode {
  MeshShape mesh;
  int recomputed_layers = 0;                 ///< as of StagePlan
  RecomputeForm form = RecomputeForm::full;  ///< likewise; full where there are none
  auto operator<=>(const StageMode&) const = default;
};

/// All modes that stages may have, with the templates and bounds of their meshes. Keeps references.
class StageModes {
 public:
  struct Options {
    int micro_batches = 1;
    int most_in_flight = 1;
    double cutoff_s = 0;  ///< modes that only slower pipelines have are of no use
    int threads = 1;
    std::string name;  ///< of the search, on progress lines
    SelectionCache* cache = nullptr;
  };

  /// `rematerialize`: of what may be done with what a layer made, what is tried.
  StageModes(const PlanningGraph&, const CostTable&, const StageSpans&, std::vector<MeshShape>,
             const std::vector<LayerForm>& rematerialize, const Options&);

  /// The first bound of every mesh, where memory is free. False where there was no time for all.
  bool find_bounds(PlanningClock&);
  /// The templates of those that are of use. False where there was no time for all.
  bool find_templates(PlanningClock&);

  const StageEstimates& estimates() const { return estimates_; }

  /// On a stage that holds so many micro-batches. Infinity: it cannot be run so.
  StageEstimates::Least least(const StageMode&, const StageSpan&, int in_flight) const;
  /// Likewise in whatever mode.
  StageEstimates::Least least(const StageSpan&, int in_flight) const;
  /// Numbers of micro-batches held from which on bounds say more, ascending from 1.
  std::vector<int> in_flight_of_bounds(int devices) const;
  /// Bounds where memory has the price that it has for that stage, which hold for all on as many devices that
  /// hold as many micro-batches or more; on meshes on which that stage may take less than `below_s`. False
  /// where there are such, or memory is worth nothing.
  bool raise_bounds(const StageSpan&, int in_flight, double below_s, PlanningClock&);
  /// Of such a stage.
  std::vector<StageMode> modes_of(const StageSpan&) const;
  /// On every pipeline: all devices at work all the time, each layer where it takes the fewest
  /// device-seconds.
  double least_pipeline_s() const { return device_s_.back() / spans_.devices(); }
  /// What solving a stage on so many devices is work of: pairs of strategies, of all layers in one mode.
  std::int64_t cells(int devices) const;

  /// The best template of a mode for a stage.
  struct Estimated {
    StageMode mode;
    StageWay way;
  };
  /// Of each mesh and form the best, without what arrives. Those first that memory allows, the fastest first;
  /// then those that memory allows most in flight.
  std::vector<Estimated> estimated(const StageSpan&, int in_flight) const;
  /// As of StageEstimates.
  StageSeconds arrivals(const StageSpan&, const StageSides&) const;
  StageEstimates::LeastArrivals least_arrivals(const StageSpan&, const StageSides&) const;
  /// The best in a mode; null: layers cannot be run so.
  std::optional<StageWay> way_of(const StageMode&, const StageSpan&, int in_flight) const;
  /// All ways to run a stage.
  void for_each_way(const StageSpan&, const std::function<void(const StageWay&)>&) const;
  StageMode mode_of(int way) const;
  /// The parts of templates that are this stage's.
  StageSolution part(int way, const StageSpan&) const;

 private:
  /// One for each form of layers on a mesh.
  using Fronts = std::vector<std::unique_ptr<TemplateFront>>;

  std::vector<StageMode> modes_of(const MeshShape&, const StageSpan&) const;
  RecomputeForm form_of(int way) const;
  double least_step_s(const MeshShape&, const StageSpan&, int in_flight) const;
  std::unique_ptr<TemplateFront> front(const MeshShape&, LayerForm) const;
  /// And what a bound with it may come to at most, by what templates take.
  struct PriceForMemory {
    MemoryPrice price;
    double most_bound_s = infinity;
  };
  PriceForMemory price_for(const MeshShape&, const StageSpan&, int in_flight) const;
  double least_pipeline_s(const MeshShape&, const StageSpan&) const;
  bool is_useful(const MeshShape&) const;

  const PlanningGraph& planning_;
  const CostTable& book_;
  const StageSpans& spans_;
  const std::vector<MeshShape> meshes_;
  const Options options_;
  StageEstimates estimates_;
  std::map<LayerForm, StageScope> all_layers_;
  std::vector<Fronts> fronts_;  ///< [mesh]
  LayerSums device_s_{0};       ///< [unit] device-seconds of a step where they are fewest, memory left aside
  std::map<int, std::int64_t> cells_;    ///< by devices
  std::map<int, std::set<int>> raised_;  ///< by devices: micro-batches in flight that bounds were raised for
};

}  // namespace alpa
