#pragma once
#include <memory>
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
  bool rematerialize = false;
  std::vector<LayerCosts> layers;
  std::shared_ptr<const StageSolution> solution;  ///< of all layers as one stage, equal ones folded
};

/// What bounds every stage on a mesh from below, in the same way of running: of layers first to end - 1 and
/// no fewer micro-batches in flight than the price has, the sum of theirs less `slack_s` and less what all
/// memory of a device costs. (Lagrange: what a limit does not allow, a price bounds.)
struct StageBound {
  MeshShape mesh;
  bool rematerialize = false;
  MemoryPrice price;
  struct Sum {
    std::vector<double> layers_s;
    double slack_s = 0;  ///< what the solver may have left above the least
  };
  Sum step, runs;  ///< of all micro-batches with the update, and without it
};

struct TemplateOptions {
  int micro_batches = 1;
  bool rematerialize = false;
  int most_in_flight = 1;  ///< of any stage
  SelectionCache* cache = nullptr;
  double gap = 2e-3;  ///< of each priced problem
};

/// The templates of one mesh along the front between time and memory, and the bounds that come with them.
class TemplateFront {
 public:
  /// Keeps references to the graph and the costs. The first bound, where memory is free, is there at once,
  /// but for micro-batches alone.
  TemplateFront(const PlanningGraph&, const MeshCosts&, const TemplateOptions&);

  /// The fastest, the leanest, and what lies between where it is better than a mix of both, for few and for
  /// many micro-batches in flight.
  void find_templates(const Deadline&);
  /// Bounds at the prices of others too.
  void find_bounds(const std::vector<StageBound>& others, const Deadline&);

  const MeshShape& mesh() const { return request_.mesh; }
  bool rematerializes() const { return options_.rematerialize; }
  const std::vector<StageTemplate>& templates() const { return templates_; }
  const std::vector<StageBound>& bounds() const { return bounds_; }  ///< empty: layers cannot be run so
  bool out_of_time() const { return out_of_time_; }
  std::int64_t cells() const;  ///< pairs of strategies to choose from: what solving all layers is work of

 private:
  struct Point;
  Point at(const MemoryPrice&, const Deadline&);
  void refine(const Point& fast, const Point& lean, int in_flight, int depth, const Deadline&);
  SelectionSolution solve(const SelectionProblem& priced, double time_limit_s);
  bool bound(const MemoryPrice&, bool update, StageBound::Sum&, double time_limit_s);
  void add_bound(const MemoryPrice&, double time_limit_s);

  const TemplateOptions options_;
  const StageRequest request_;
  const StageProblem problem_;
  std::set<std::vector<int>> choices_;
  std::vector<StageTemplate> templates_;
  std::vector<StageBound> bounds_;
  bool out_of_time_ = false;
};

/// The stage of all layers, on any mesh.
StageRequest all_layers(const PlanningGraph&, bool rematerialize);

/// The part of a template that some layers have. `all`: the scope of all_layers as the template runs them.
struct TemplatePart {
  const StageTemplate& whole;
  const StageScope& all;
  int first_layer = 0, end_layer = 0;
};

/// Of the stage that is made of these parts, one after another; a start for solve_stage.
StageSolution solution_of(const std::vector<TemplatePart>&);

}  // namespace alpa
