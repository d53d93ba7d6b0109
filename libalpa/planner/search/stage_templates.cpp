#include "libalpa/planner/search/stage_templates.h"

#include <algorithm>
#include <set>

#include "libalpa/base/deadline.h"
#include "libalpa/semantics/stage_semantics.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {
namespace {

/// Beyond that many times the fastest split's time for its memory, memory is worth anything.
constexpr double kDear = 10;

constexpr int kRefinements = 2;  ///< how often the front is halved between its ends

class TemplateMaker {
 public:
  TemplateMaker(const PlanningGraph& planning, const MeshCosts& mesh_costs, const TemplateOptions& options)
      : options_(options),
        deadline_(options.time_limit_s, options.stop),
        request_(request(planning, mesh_costs)),
        problem_(planning, request_, mesh_costs) {}

  MeshTemplates make() {
    if (!problem_.why_not().empty()) return {};
    for (const int in_flight : {1, 4, 16})
      if (in_flight <= options_.most_in_flight) add_front(in_flight);
    return std::move(made_);
  }

 private:
  /// A split with its place on the front.
  struct Point {
    double step_s = 0, bytes = 0;
    bool exists = false;
  };

  StageRequest request(const PlanningGraph& planning, const MeshCosts& mesh_costs) const {
    StageRequest all;
    all.end_layer = static_cast<int>(planning.graph().layers.size());
    all.mesh = mesh_costs.mesh();
    all.micro_batches = options_.micro_batches;
    all.rematerialize = options_.rematerialize;
    return all;
  }

  void add_front(int in_flight) {
    const double flying = in_flight;
    const Point fastest = at({0, flying});
    if (!fastest.exists || fastest.bytes <= 0) return;
    const double dear = kDear * fastest.step_s / fastest.bytes;
    const Point leanest = at({dear, flying});
    if (leanest.exists) refine(fastest, leanest, flying, kRefinements);
  }

  /// What lies below the line between two points.
  void refine(const Point& fast, const Point& lean, double in_flight, int depth) {
    if (depth == 0 || lean.bytes >= fast.bytes || lean.step_s <= fast.step_s * (1 + options_.gap)) return;
    const double price = (lean.step_s - fast.step_s) / (fast.bytes - lean.bytes);
    const Point between = at({price, in_flight});
    if (!between.exists) return;
    const auto priced = [&](const Point& p) { return p.step_s + price * p.bytes; };
    if (priced(between) >= priced(fast) * (1 - options_.gap)) return;
    refine(fast, between, in_flight, depth - 1);
    refine(between, lean, in_flight, depth - 1);
  }

  SelectionSolution solve(const SelectionProblem& priced) {
    SelectionOptions options;
    options.gap = options_.gap;
    options.effort = 20'000;
    options.time_limit_s = std::max(0.0, deadline_.seconds_left());
    options.stop = options_.stop;
    SelectionSolution solved = solve_selection(priced, options);
    made_.out_of_time |= solved.hit_time_limit;
    return solved;
  }

  Point at(const MemoryPrice& price) {
    if (deadline_.passed()) {
      made_.out_of_time = true;
      return {};
    }
    const SelectionSolution solved = solve(problem_.priced(price));
    if (!solved.feasible) return {};
    StageTemplate found{request_.mesh, request_.rematerialize, problem_.layer_costs(solved.choice), {}};
    Point point{0, 0, true};
    for (const LayerCosts& layer : found.layers) {
      point.step_s += options_.micro_batches * layer.micro_batch_s + layer.update_s;
      point.bytes += static_cast<double>(layer.resident_bytes) +
                     price.in_flight * static_cast<double>(layer.micro_batch_bytes);
    }
    if (choices_.insert(solved.choice).second) {
      found.solution = problem_.solution_of(solved.choice);
      made_.templates.push_back(std::move(found));
    }
    if (price.in_flight == 1) add_bound(price);
    return point;
  }

  void add_bound(const MemoryPrice& price) {
    const SelectionProblem apart = problem_.priced(price, true);
    const SelectionSolution solved = solve(apart);
    if (!solved.feasible) return;
    made_.bounds.push_back({request_.mesh, request_.rematerialize, price,
                            problem_.layer_prices(apart, solved.choice), solved.cost - solved.lower_bound});
  }

  const TemplateOptions& options_;
  const Deadline deadline_;
  const StageRequest request_;
  const StageProblem problem_;
  std::set<std::vector<int>> choices_;
  MeshTemplates made_;
};

}  // namespace

MeshTemplates stage_templates(const PlanningGraph& planning, const MeshCosts& mesh_costs,
                              const TemplateOptions& options) {
  return TemplateMaker(planning, mesh_costs, options).make();
}

StageSolution part_of(const StageTemplate& whole, const PlanningGraph& planning, int first_layer,
                      int end_layer) {
  const StageSemantics stage(planning.uses, {first_layer, end_layer, whole.rematerialize});
  const Graph& graph = planning.graph();
  StageSolution part;
  part.feasible = true;
  const auto take = [&](ValueIndex v) {
    const auto segments = whole.solution.segment_layouts.find(v);
    if (segments == whole.solution.segment_layouts.end()) return;
    part.segment_layouts[v] = segments->second;
    const StateIndex state = planning.uses.state_at[v];
    const ValueIndex next = state >= 0 ? graph.states[state].next : ValueIndex(-1);
    const bool rests_here =
        stage.makes(v) ||
        (state >= 0 && (next >= 0 ? stage.makes(next) : stage.has(planning.uses.users_of(v).front())));
    if (const auto layout = whole.solution.value_layout.find(v); layout != whole.solution.value_layout.end())
      (rests_here ? part.value_layout : part.received_layout)[v] = layout->second;
  };
  for (const NodeIndex n : graph.nodes.indices()) {
    if (!stage.has(n)) continue;
    if (const auto at = whole.solution.node_strategy.find(n); at != whole.solution.node_strategy.end())
      part.node_strategy[n] = at->second;
    for (const ValueIndex v : node_of(graph, n).operands) take(v);
    for (const ValueIndex v : node_of(graph, n).results) take(v);
  }
  return part;
}

}  // namespace alpa
