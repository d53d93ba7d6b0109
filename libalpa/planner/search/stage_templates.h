#pragma once
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "libalpa/base/deadline.h"
#include "libalpa/planner/stage/stage_problem.h"

namespace alpa {

/// All layers of a model on one mesh, split as is cheapest where memory has some price. A stage takes its
/// layers' part of it: with a price in place of a limit, what is best for all layers is best for any of them,
/// but for what they do at its borders.
struct StageTemplate {
  MeshShape mesh;
  LayerForm rematerialize;
  std::vector<LayerCosts> layers;
  std::shared_ptr<const StageSolution> solution;  ///< of all layers as one stage, equal ones folded
};

/// What bounds every stage on a mesh from below, in the same way of running: of layers first to end - 1 and
/// no fewer micro-batches in flight than the price has, the sum of theirs less what all memory of a device
/// costs. (Lagrange: what a limit does not allow, a price bounds.)
struct StageBound {
  MeshShape mesh;
  LayerForm rematerialize;
  MemoryPrice price;
  using Layers = std::vector<double>;  ///< [layer] seconds; empty: not bounded
  Layers step_s, runs_s;               ///< of all micro-batches with the update, and without it
  Layers weighed_s;  ///< of all micro-batches with kUpdateTimes updates; empty: updates are short
};

/// Of a step: an update that is no longer decides little.
inline constexpr double kShortUpdate = 0.02;

/// How often an update is counted where it is to be known what a short one takes in micro-batches.
inline constexpr double kUpdateTimes = 4;

struct TemplateOptions {
  int micro_batches = 1;
  LayerForm rematerialize;
  int most_in_flight = 1;   ///< of any stage
  double enough_bytes = 0;  ///< where all layers take no more, memory is worth nothing to any stage
  SelectionCache* cache = nullptr;
  double gap = 2e-3;  ///< of each priced problem
};

/// What layers take as a template has them.
struct TemplatePoint {
  double step_s = 0, update_s = 0, resident_bytes = 0, micro_batch_bytes = 0;
  double bytes(int in_flight) const { return resident_bytes + in_flight * micro_batch_bytes; }
};
TemplatePoint point_of(const StageTemplate&, int micro_batches, int first_layer, int end_layer);

/// What a byte is worth to a mix of such templates that takes no more than so many: the price at which its
/// bound is the highest. Free where the fastest fits; where none does, what it is worth to the leanest.
MemoryPrice binding_price(const std::vector<TemplatePoint>&, int in_flight, double bytes);

/// The templates of one mesh along the front between time and memory, and bounds on what is run on it.
class TemplateFront {
 public:
  /// Keeps references to the graph and the costs.
  TemplateFront(const PlanningGraph&, const MeshCosts&, const TemplateOptions&);

  /// A bound where memory has that price; where it is free, on whole steps (on micro-batches:
  /// find_templates).
  void find_bound(const MemoryPrice&, const Deadline&);
  /// Once there is a bound where it is free: the fastest, the leanest, and what lies between where it is
  /// better than a mix of both, for few and for many micro-batches in flight; and that bound on micro-batches
  /// alone.
  void find_templates(const Deadline&);

  const MeshShape& mesh() const { return request_.mesh; }
  LayerForm rematerializes() const { return options_.rematerialize; }
  const std::vector<StageTemplate>& templates() const { return templates_; }
  const std::vector<StageBound>& bounds() const { return bounds_; }  ///< empty: layers cannot be run so
  bool out_of_time() const { return out_of_time_; }
  std::int64_t cells() const;  ///< pairs of strategies to choose from: what solving all layers is work of

 private:
  std::optional<TemplatePoint> at(const MemoryPrice&, const Deadline&);
  void refine(const TemplatePoint& fast, const TemplatePoint& lean, int in_flight, int depth,
              const Deadline&);
  SelectionSolution solve(const SelectionProblem& priced, const Deadline&);
  bool bound(const MemoryPrice&, double update_weight, StageBound::Layers&, const Deadline&);

  const TemplateOptions options_;
  const StageRequest request_;
  const StageProblem problem_;
  std::set<std::vector<int>> choices_;
  std::vector<StageTemplate> templates_;
  std::vector<StageBound> bounds_;
  bool out_of_time_ = false;
};

/// The stage of all layers, on any mesh.
StageRequest all_layers(const PlanningGraph&, LayerForm);

/// The part of a template that some layers have. `all`: the scope of all_layers as the template runs them.
struct TemplatePart {
  const StageTemplate& whole;
  const StageScope& all;
  int first_layer = 0, end_layer = 0;
};

/// Of the stage that is made of these parts, one after another; a start for solve_stage.
StageSolution solution_of(const std::vector<TemplatePart>&);

}  // namespace alpa
