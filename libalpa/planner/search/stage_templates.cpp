#include "libalpa/planner/search/stage_templates.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/semantics/stage_semantics.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace alpa {
namespace {

/// Beyond that many times the fastest split's time for its memory, memory is worth anything.
constexpr double kDear = 10;

constexpr int kRefinements = 1;  ///< how often the front is halved between its ends

StageRequest request_of(const PlanningGraph& planning, const MeshShape& mesh,
                        const TemplateOptions& options) {
  StageRequest all = all_layers(planning, options.rematerialize);
  all.mesh = mesh;
  all.micro_batches = options.micro_batches;
  return all;
}

}  // namespace

/// A split's place on the front.
struct TemplateFront::Point {
  double step_s = 0, resident_bytes = 0, micro_batch_bytes = 0;
  bool exists = false;

  double bytes(int in_flight) const { return resident_bytes + in_flight * micro_batch_bytes; }
};

TemplateFront::TemplateFront(const PlanningGraph& planning, const MeshCosts& mesh_costs,
                             const TemplateOptions& options)
    : options_(options),
      request_(request_of(planning, mesh_costs.mesh(), options)),
      problem_(planning, request_, mesh_costs) {
  if (!problem_.why_not().empty()) return;
  StageBound first{request_.mesh, options_.rematerialize, {0, 1}, {}, {}};
  if (bound(first.price, true, first.step, infinity)) bounds_.push_back(std::move(first));
}

std::int64_t TemplateFront::cells() const {
  std::int64_t cells = 0;
  for (const SelectionProblem::Edge& edge : problem_.selection().edges) cells += std::ssize(edge.cost);
  return cells;
}

void TemplateFront::find_templates(const Deadline& deadline) {
  if (bounds_.empty()) return;
  StageBound& free = bounds_.front();
  if (!bound(free.price, false, free.runs, deadline.seconds_left()))
    free.runs.layers_s.assign(free.step.layers_s.size(), 0);
  const Point fastest = at({0, 1}, deadline);
  for (const int in_flight : {1, 8}) {
    if (in_flight > options_.most_in_flight || !fastest.exists || fastest.bytes(in_flight) <= 0) break;
    const Point leanest = at({kDear * fastest.step_s / fastest.bytes(in_flight), 1.0 * in_flight}, deadline);
    if (leanest.exists) refine(fastest, leanest, in_flight, kRefinements, deadline);
  }
}

/// What lies below the line between two points.
void TemplateFront::refine(const Point& fast, const Point& lean, int in_flight, int depth,
                           const Deadline& deadline) {
  const double saved = fast.bytes(in_flight) - lean.bytes(in_flight);
  if (depth == 0 || saved <= 0 || lean.step_s <= fast.step_s * (1 + options_.gap)) return;
  const double price = (lean.step_s - fast.step_s) / saved;
  const Point between = at({price, 1.0 * in_flight}, deadline);
  if (!between.exists) return;
  const auto priced = [&](const Point& p) { return p.step_s + price * p.bytes(in_flight); };
  if (priced(between) >= priced(fast) * (1 - options_.gap)) return;
  refine(fast, between, in_flight, depth - 1, deadline);
  refine(between, lean, in_flight, depth - 1, deadline);
}

SelectionSolution TemplateFront::solve(const SelectionProblem& priced, double time_limit_s) {
  SelectionOptions options;
  options.gap = options_.gap;
  options.most_cbc_cells = 0;
  options.effort = 100;  // elimination and a few prices; what is left of the gap is the bound's slack
  options.time_limit_s = time_limit_s;
  options.cache = options_.cache;
  SelectionSolution solved = solve_selection(priced, options);
  out_of_time_ |= solved.hit_time_limit;
  return solved;
}

TemplateFront::Point TemplateFront::at(const MemoryPrice& price, const Deadline& deadline) {
  if (deadline.passed()) {
    out_of_time_ = true;
    return {};
  }
  const SelectionSolution solved = solve(problem_.priced(price), deadline.seconds_left());
  if (!solved.feasible) return {};
  StageTemplate found{request_.mesh, options_.rematerialize, problem_.layer_costs(solved.choice), {}};
  Point point{0, 0, 0, true};
  for (const LayerCosts& layer : found.layers) {
    point.step_s += options_.micro_batches * layer.micro_batch_s + layer.update_s;
    point.resident_bytes += static_cast<double>(layer.resident_bytes);
    point.micro_batch_bytes += static_cast<double>(layer.micro_batch_bytes);
  }
  if (choices_.insert(solved.choice).second) {
    found.solution =
        std::make_shared<const StageSolution>(problem_.reader().folded_solution_of(solved.choice));
    templates_.push_back(std::move(found));
  }
  if (price.in_flight == 1 && price.per_byte_s > 0) add_bound(price, deadline.seconds_left());
  return point;
}

bool TemplateFront::bound(const MemoryPrice& price, bool update, StageBound::Sum& sum, double time_limit_s) {
  const SelectionProblem apart = problem_.priced_apart(price, update);
  const SelectionSolution solved = solve(apart, time_limit_s);
  if (!solved.feasible) return false;
  sum.layers_s = problem_.layer_prices(apart, solved.choice);
  sum.slack_s = solved.cost - solved.lower_bound;
  return true;
}

void TemplateFront::add_bound(const MemoryPrice& price, double time_limit_s) {
  StageBound added{request_.mesh, options_.rematerialize, price, {}, {}};
  if (bound(price, true, added.step, time_limit_s) && bound(price, false, added.runs, time_limit_s))
    bounds_.push_back(std::move(added));
}

void TemplateFront::find_bounds(const std::vector<StageBound>& others, const Deadline& deadline) {
  for (const StageBound& other : others)
    if (std::ranges::find(bounds_, other.price, &StageBound::price) == bounds_.end())
      add_bound(other.price, deadline.seconds_left());
}

StageRequest all_layers(const PlanningGraph& planning, bool rematerialize) {
  StageRequest all;
  all.end_layer = static_cast<int>(planning.graph().layers.size());
  if (rematerialize) all.recomputed_layers = all.end_layer;
  return all;
}

StageSolution solution_of(const std::vector<TemplatePart>& parts) {
  const PlanningGraph& planning = parts.front().all.planning();
  const Graph& graph = parts.front().all.graph();
  const StageSemantics stage(planning.uses, {parts.front().first_layer, parts.back().end_layer});
  StageSolution solution;
  solution.feasible = true;
  const auto take = [&](const TemplatePart& part, ValueIndex v) {
    const StageSolution& whole = *part.whole.solution;
    const ValueIndex known = part.all.canonical_value(v);
    const auto segments = whole.segment_layouts.find(known);
    if (segments == whole.segment_layouts.end() ||
        !solution.segment_layouts.emplace(v, segments->second).second)
      return;
    const StateIndex state = planning.uses.state_at[v];
    const ValueIndex next = state >= 0 ? graph.states[state].next : ValueIndex(-1);
    const bool rests_here =
        stage.makes(v) ||
        (state >= 0 && (next >= 0 ? stage.makes(next) : stage.has(planning.uses.users_of(v).front())));
    if (const auto layout = whole.value_layout.find(known); layout != whole.value_layout.end())
      (rests_here ? solution.value_layout : solution.received_layout)[v] = layout->second;
  };
  for (const TemplatePart& part : parts)
    for (int layer = part.first_layer; layer < part.end_layer; ++layer)
      for (const NodeIndex n : planning.classes.layer_nodes[layer]) {
        if (!stage.has(n)) continue;
        const std::map<NodeIndex, Strategy>& strategies = part.whole.solution->node_strategy;
        if (const auto at = strategies.find(part.all.canonical_node(n)); at != strategies.end())
          solution.node_strategy[n] = at->second;
        for (const ValueIndex v : node_of(graph, n).operands) take(part, v);
        for (const ValueIndex v : node_of(graph, n).results) take(part, v);
      }
  return solution;
}

}  // namespace alpa
