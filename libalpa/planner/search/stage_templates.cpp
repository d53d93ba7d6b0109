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

TemplatePoint point_of(const StageTemplate& whole, int micro_batches, int first, int end) {
  TemplatePoint point;
  for (int l = first; l < end; ++l) {
    const LayerCosts& layer = whole.layers[l];
    point.step_s += micro_batches * layer.micro_batch_s + layer.update_s;
    point.update_s += layer.update_s;
    point.resident_bytes += static_cast<double>(layer.resident_bytes);
    point.micro_batch_bytes += static_cast<double>(layer.micro_batch_bytes);
  }
  return point;
}

/// Along the lower hull of the points, from the fastest on.
MemoryPrice binding_price(const std::vector<TemplatePoint>& points, int in_flight, double bytes) {
  MemoryPrice price{0, 1.0 * in_flight};
  if (points.empty()) return price;
  TemplatePoint at = *std::ranges::min_element(points, {}, &TemplatePoint::step_s);
  while (at.bytes(in_flight) > bytes) {
    const TemplatePoint from = at;
    double least = infinity;
    for (const TemplatePoint& to : points) {
      const double saved = from.bytes(in_flight) - to.bytes(in_flight);
      const double worth = saved > 0 ? std::max(0.0, to.step_s - from.step_s) / saved : infinity;
      if (worth < least) at = to, least = worth;
    }
    if (least == infinity) break;
    price.per_byte_s = least;
  }
  return price;
}

TemplateFront::TemplateFront(const PlanningGraph& planning, const MeshCosts& mesh_costs,
                             const TemplateOptions& options)
    : options_(options),
      request_(request_of(planning, mesh_costs.mesh(), options)),
      problem_(planning, request_, mesh_costs) {}

std::int64_t TemplateFront::cells() const {
  std::int64_t cells = 0;
  for (const SelectionProblem::Edge& edge : problem_.selection().edges) cells += std::ssize(edge.cost);
  return cells;
}

void TemplateFront::find_templates(const Deadline& deadline) {
  if (bounds_.empty()) return;
  StageBound& free = bounds_.front();
  if (!bound(free.price, 0, free.runs_s, deadline)) free.runs_s.assign(free.step_s.size(), 0);
  const std::optional<TemplatePoint> fastest = at({0, 1}, deadline);
  if (fastest && fastest->update_s > kShortUpdate * fastest->step_s)
    bound(free.price, kUpdateTimes, free.weighed_s, deadline);
  for (const int in_flight : {1, 8}) {
    if (in_flight > options_.most_in_flight || !fastest) break;
    if (fastest->bytes(in_flight) <= options_.enough_bytes) continue;
    const double dear = kDear * fastest->step_s / fastest->bytes(in_flight);
    if (const auto leanest = at({dear, 1.0 * in_flight}, deadline))
      refine(*fastest, *leanest, in_flight, kRefinements, deadline);
  }
}

/// What lies below the line between two points.
void TemplateFront::refine(const TemplatePoint& fast, const TemplatePoint& lean, int in_flight, int depth,
                           const Deadline& deadline) {
  const double saved = fast.bytes(in_flight) - lean.bytes(in_flight);
  if (depth == 0 || saved <= 0 || lean.step_s <= fast.step_s * (1 + options_.gap)) return;
  const double price = (lean.step_s - fast.step_s) / saved;
  const auto between = at({price, 1.0 * in_flight}, deadline);
  if (!between) return;
  const auto priced = [&](const TemplatePoint& p) { return p.step_s + price * p.bytes(in_flight); };
  if (priced(*between) >= priced(fast) * (1 - options_.gap)) return;
  refine(fast, *between, in_flight, depth - 1, deadline);
  refine(*between, lean, in_flight, depth - 1, deadline);
}

SelectionSolution TemplateFront::solve(const SelectionProblem& priced, const Deadline& deadline) {
  SelectionOptions options;
  options.gap = options_.gap;
  options.most_cbc_cells = 0;
  options.effort = 100;  // elimination and a few prices
  options.time_limit_s = deadline.seconds_left();
  options.cache = options_.cache;
  SelectionSolution solved = solve_selection(priced, options);
  out_of_time_ |= solved.hit_time_limit;
  return solved;
}

std::optional<TemplatePoint> TemplateFront::at(const MemoryPrice& price, const Deadline& deadline) {
  if (deadline.passed()) {
    out_of_time_ = true;
    return std::nullopt;
  }
  const SelectionSolution solved = solve(problem_.priced(price), deadline);
  if (!solved.feasible) return std::nullopt;
  StageTemplate found{request_.mesh, options_.rematerialize, problem_.layer_costs(solved.choice), {}};
  const TemplatePoint point =
      point_of(found, options_.micro_batches, 0, static_cast<int>(found.layers.size()));
  if (choices_.insert(solved.choice).second) {
    found.solution =
        std::make_shared<const StageSolution>(problem_.reader().folded_solution_of(solved.choice));
    templates_.push_back(std::move(found));
  }
  return point;
}

bool TemplateFront::bound(const MemoryPrice& price, double update_weight, StageBound::Layers& layers_s,
                          const Deadline& deadline) {
  std::vector<double> least;
  for (const SelectionProblem& layer : problem_.priced_layers(price, update_weight)) {
    least.push_back(0);
    if (layer.nodes.empty()) continue;
    const SelectionSolution solved = solve(layer, deadline);
    if (!solved.feasible) return false;
    least.back() = solved.lower_bound;
  }
  layers_s = problem_.shared_by_copies(least);
  return true;
}

void TemplateFront::find_bound(const MemoryPrice& price, const Deadline& deadline) {
  if (!problem_.why_not().empty()) return;
  StageBound added{request_.mesh, options_.rematerialize, price, {}, {}, {}};
  if (!bound(price, 1, added.step_s, deadline)) return;
  bounds_.push_back(std::move(added));
}

StageRequest all_layers(const PlanningGraph& planning, LayerForm form) {
  StageRequest all;
  all.end_layer = static_cast<int>(planning.graph().layers.size());
  if (form) all.recomputed_layers = all.end_layer;
  all.recompute_form = form.value_or(RecomputeForm::full);
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
