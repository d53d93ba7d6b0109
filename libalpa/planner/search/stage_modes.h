#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/stage_estimates.h"
#include "libalpa/planner/search/stage_spans.h"

namespace alpa {

/// How a stage may be run, beside how its operators are split.
struct StageMode {
  MeshShape mesh;
  bool rematerialize = false;
  auto operator<=>(const StageMode&) const = default;
};

/// All modes that stages may have, with the templates and bounds of each. Keeps references.
class StageModes {
 public:
  struct Options {
    int micro_batches = 1;
    int most_in_flight = 1;
    bool is_apart = false;  ///< as of StageRequest
    double cutoff_s = 0;    ///< modes that only slower pipelines have are of no use
    int threads = 1;
    std::string name;  ///< of the search, on progress lines
  };

  StageModes(const PlanningGraph&, const CostTable&, const StageSpans&, std::vector<StageMode>,
             const Options&);

  /// The first bound of every mode, where memory is free. False where there was no time for all.
  bool find_bounds(PlanningClock&);
  /// The templates of those that are of use. False where there was no time for all.
  bool find_templates(PlanningClock&);

  const std::vector<StageMode>& all() const { return modes_; }
  const StageEstimates& estimates() const { return estimates_; }

  /// On the step of such a stage; 0: nothing is known.
  double least_step_s(const StageMode&, const StageSpan&) const;
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
  /// Those first that memory allows, the fastest first.
  std::vector<Estimated> estimated(const StageSpan&, int in_flight) const;
  /// The part of a template that is this stage's.
  StageSolution part(int of_template, const StageSpan&) const;

 private:
  double least_pipeline_s(const StageMode&, const StageSpan&) const;
  bool is_useful(const StageMode&) const;

  const PlanningGraph& planning_;
  const CostTable& book_;
  const StageSpans& spans_;
  const std::vector<StageMode> modes_;
  const Options options_;
  StageEstimates estimates_;
  std::map<bool, StageScope> all_layers_;               ///< [rematerialised]
  std::vector<std::unique_ptr<TemplateFront>> fronts_;  ///< [mode]
  LayerSums device_s_{0};  ///< [unit] device-seconds of a step where they are fewest, memory left aside
  std::map<int, std::int64_t> cells_;  ///< by devices
};

}  // namespace alpa
