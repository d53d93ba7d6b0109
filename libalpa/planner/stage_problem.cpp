#include "libalpa/planner/stage_problem.h"

#include <algorithm>
#include <optional>

#include "libalpa/base/checked.h"
#include "libalpa/base/infinity.h"
#include "libalpa/planner/stage_edges.h"

namespace alpa {

StageProblem::StageProblem(const PlanningGraph& planning, const StageRequest& request,
                           const MeshPrices& prices)
    : request_(request),
      scope_(planning, request_),
      prices_(prices),
      stage_(stage_variables(scope_, request_, prices)) {
  if (stage_.why_not.empty() && !most_bytes()) stage_.why_not = "its memory does not fit into 64 bits";
  if (stage_.why_not.empty()) make_selection();
}

/// Memory at times of its own: a node that chooses as `node` does.
void StageProblem::hold(int variable, const Holding& holding) {
  twins_.push_back(variable);
  const std::size_t choices = holding.bytes.size();
  const int twin = static_cast<int>(problem_.nodes.size());
  problem_.nodes.push_back({std::vector<double>(choices, 0.0), holding.bytes, holding.begin, holding.end});
  std::vector<double> same(choices * choices, infinity);
  for (std::size_t c = 0; c < choices; ++c) same[c * choices + c] = 0;
  problem_.edges.push_back({variable, twin, std::move(same)});
}

/// No choice takes more; nothing where 64 bits do not count it.
std::optional<std::int64_t> StageProblem::most_bytes() const {
  const auto most = [](const std::vector<std::int64_t>& bytes) {
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  };
  std::optional<std::int64_t> sum = request_.reserve_bytes;
  for (const StageVariable& v : stage_.variables) {
    sum = checked_sum(sum, checked_product(most(v.slot), request_.in_flight));
    for (const auto* bytes : {&v.fixed, &v.passing.bytes, &v.again.bytes})
      sum = checked_sum(sum, most(*bytes));
  }
  return sum;
}

void StageProblem::make_selection() {
  for (const StageVariable& v : stage_.variables) {
    std::vector<std::int64_t> lasting;
    for (std::size_t c = 0; c < v.choices.size(); ++c)
      lasting.push_back(v.fixed[c] + request_.in_flight * v.slot[c]);
    problem_.nodes.push_back({v.cost, std::move(lasting), 0, std::max(stage_.clock, 1)});
  }
  for (int i = 0; i < static_cast<int>(stage_.variables.size()); ++i) {
    const auto needed = [](const Holding& h) {
      return std::any_of(h.bytes.begin(), h.bytes.end(), [](std::int64_t b) { return b > 0; });
    };
    SelectionProblem::Node& node = problem_.nodes[static_cast<std::size_t>(i)];
    const bool lasts =
        std::any_of(node.memory.begin(), node.memory.end(), [](std::int64_t b) { return b > 0; });
    for (const Holding* holding : {&variable(i).passing, &variable(i).again}) {
      if (!needed(*holding)) continue;
      hold(i, *holding);
    }
    if (!lasts) problem_.nodes[static_cast<std::size_t>(i)].end = 0;
  }
  for (const auto& [edge, count] : stage_.edges) {
    const std::size_t rows = variable(edge.from).choices.size(), columns = variable(edge.to).choices.size();
    const double runs = runs_per_step(request_, edge.phase) * count;
    if (edge.from == edge.to) {
      auto& cost = problem_.nodes[static_cast<std::size_t>(edge.from)].cost;
      for (std::size_t c = 0; c < rows; ++c) cost[c] += runs * edge_seconds(stage_, edge, c, prices_)[c];
      continue;
    }
    SelectionProblem::Edge priced{edge.from, edge.to, {}};
    priced.cost.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (const double seconds : edge_seconds(stage_, edge, r, prices_))
        priced.cost.push_back(runs * seconds);
    problem_.edges.push_back(std::move(priced));
  }
  problem_.memory_limit =
      std::max<std::int64_t>(0, prices_.costs().cluster().memory_bytes - request_.reserve_bytes);
}

std::optional<ShardingSpec> StageProblem::layout_in(const StageSolution& solution, int value,
                                                    std::optional<Phase> segment) const {
  if (segment) {
    const auto at = solution.segment_layouts.find(value);
    if (at == solution.segment_layouts.end()) return std::nullopt;
    return *segment == Phase::forward ? at->second.forward : at->second.backward;
  }
  if (scope_.value(value).kind == ValueKind::input)
    return replicated_spec(scope_.value(value).type.shape.size());
  for (const auto* known : {&solution.value_layout, &solution.arriving})
    if (const auto at = known->find(value); at != known->end()) return at->second;
  return std::nullopt;
}

std::vector<int> StageProblem::choice_of(const StageSolution& solution) const {
  std::vector<int> choice;
  std::map<int, std::optional<Phase>>
      segment_of;  // variable -> the segment whose layout it is; none: at rest
  for (const auto& [what, index] : stage_.of_segment) segment_of[index] = what.second;
  for (int index = 0; index < static_cast<int>(stage_.variables.size()); ++index) {
    const StageVariable& v = variable(index);
    std::size_t c = 0;
    if (v.node >= 0) {
      const auto at = solution.node_strategy.find(v.node);
      if (at == solution.node_strategy.end()) return {};
      while (c < v.choices.size() && option(v, c).strategy != at->second) ++c;
    } else {
      const std::optional<ShardingSpec> known = layout_in(solution, v.value, segment_of[index]);
      if (!known) return {};
      const ShardingSpec& wanted = *known;
      while (c < v.choices.size() && prices_.layouts(v.value).spec(v.choices[c]) != wanted) ++c;
      if (c < v.choices.size() && !v.as_made.empty()) {
        const int maker = stage_.of_node.at(scope_.value(v.value).producer);  // comes before
        const auto made = static_cast<std::size_t>(choice[static_cast<std::size_t>(maker)]);
        const auto result =
            static_cast<std::size_t>(place_of(scope_.node(variable(maker).node).results, v.value));
        const bool as_made = option(variable(maker), made).results[result] == v.choices[c];
        const int layout = v.choices[c];
        while (c < v.choices.size() && (v.choices[c] != layout || v.as_made[c] != as_made)) ++c;
      }
    }
    if (c == v.choices.size()) return {};
    choice.push_back(static_cast<int>(c));
  }
  return with_twins(std::move(choice));
}

std::vector<int> StageProblem::with_twins(std::vector<int> choice) const {
  for (const int variable : twins_) choice.push_back(choice[static_cast<std::size_t>(variable)]);
  return choice;
}

/// The layout in which a node takes or makes a value.
ShardingSpec StageProblem::layout_at_node(int n, int value, bool result,
                                          const std::vector<int>& choice) const {
  const int index = stage_.of_node.at(scope_.canonical_node(n));
  const NodeOption& taken =
      option(variable(index), static_cast<std::size_t>(choice[static_cast<std::size_t>(index)]));
  const Node& node = scope_.node(n);
  const auto place = static_cast<std::size_t>(place_of(result ? node.results : node.operands, value));
  return prices_.layouts(value).spec(result ? taken.results[place] : taken.operands[place]);
}

ShardingSpec StageProblem::resting_layout(int value, const std::vector<int>& choice) const {
  const auto own = stage_.of_value.find(scope_.canonical_value(value));
  if (own != stage_.of_value.end()) {
    const auto chosen = static_cast<std::size_t>(choice[static_cast<std::size_t>(own->second)]);
    return prices_.layouts(value).spec(variable(own->second).choices[chosen]);
  }
  if (const int state = scope_.planning().uses.state_after_value(value); state >= 0)
    return resting_layout(scope_.graph().states[static_cast<std::size_t>(state)].value, choice);
  if (scope_.value(value).kind == ValueKind::state) {
    // What is no parameter rests as its update takes it.
    const int state = scope_.planning().uses.state_at[static_cast<std::size_t>(value)];
    const int next = scope_.graph().states[static_cast<std::size_t>(state)].next;
    if (next >= 0 && scope_.makes(next))
      return layout_at_node(scope_.value(next).producer, next, true, choice);
    for (const int user : scope_.users(value)) return layout_at_node(user, value, false, choice);
  }
  if (scope_.makes(value)) return layout_at_node(scope_.value(value).producer, value, true, choice);
  return replicated_spec(scope_.value(value).type.shape.size());
}

SegmentLayouts StageProblem::segment_layouts(int value, const std::vector<int>& choice) const {
  const auto in = [&](Phase segment) {
    const auto own = stage_.of_segment.find({scope_.canonical_value(value), segment});
    if (own != stage_.of_segment.end()) {
      const auto chosen = static_cast<std::size_t>(choice[static_cast<std::size_t>(own->second)]);
      return prices_.layouts(value).spec(variable(own->second).choices[chosen]);
    }
    if (!scope_.made_in(value, segment)) return resting_layout(value, choice);
    const bool rests = stage_.of_value.contains(scope_.canonical_value(value)) &&
                       scope_.node(scope_.value(value).producer).phase == segment;
    return rests ? resting_layout(value, choice)
                 : layout_at_node(scope_.value(value).producer, value, true, choice);
  };
  return {in(Phase::forward), in(Phase::backward)};
}

double StageProblem::seconds(const std::vector<int>& choice, bool update) const {
  double sum = 0;
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    const StageVariable& v = stage_.variables[i];
    const auto c = static_cast<std::size_t>(choice[i]);
    const bool of_update = v.node >= 0 && scope_.node(v.node).phase == Phase::update;
    const double once = of_update ? v.cost[c] : v.once[c];
    sum += update ? once : v.cost[c] - once;
  }
  for (const auto& [edge, count] : stage_.edges)
    if ((edge.phase == Phase::update) == update)
      sum += runs_per_step(request_, edge.phase) * count *
             edge_seconds(stage_, edge, static_cast<std::size_t>(choice[static_cast<std::size_t>(edge.from)]),
                          prices_)[static_cast<std::size_t>(choice[static_cast<std::size_t>(edge.to)])];
  return sum;
}

StageSolution StageProblem::solution_of(const std::vector<int>& choice) const {
  StageSolution solution;
  solution.feasible = true;
  for (const int n : scope_.nodes()) {
    const int index = stage_.of_node.at(scope_.canonical_node(n));
    solution.node_strategy[n] =
        option(variable(index), static_cast<std::size_t>(choice[static_cast<std::size_t>(index)])).strategy;
  }
  for (const int v : scope_.values()) {
    const Value& value = scope_.value(v);
    if (v == scope_.graph().gradient_square_sum) continue;
    solution.segment_layouts[v] = segment_layouts(v, choice);
    if (value.kind == ValueKind::input) continue;
    const bool rests_here = scope_.makes(v) || (value.kind == ValueKind::state && scope_.updates(v));
    (rests_here ? solution.value_layout : solution.arriving)[v] = resting_layout(v, choice);
  }
  solution.update_s = seconds(choice, true);
  const double running = seconds(choice, false);
  solution.micro_batch_s = running / request_.micro_batches;
  solution.step_s = running + solution.update_s;
  std::int64_t passing = 0, again = 0;
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    const StageVariable& v = stage_.variables[i];
    const std::size_t c = static_cast<std::size_t>(choice[i]);
    solution.fixed_bytes += v.fixed[c];
    solution.slot_bytes += v.slot[c];
    if (!v.passing.bytes.empty()) passing = std::max(passing, v.passing.bytes[c]);
    if (!v.again.bytes.empty()) again += v.again.bytes[c];
  }
  solution.fixed_bytes += passing + again;
  return solution;
}

StageSolution solve_stage(const PlanningGraph& planning, const StageRequest& request,
                          const MeshPrices& prices, const SelectionOptions& options,
                          const StageSolution* start) {
  const StageProblem problem(planning, request, prices);
  StageSolution solution;
  if (!problem.why_not().empty()) {
    solution.why_not = problem.why_not();
    solution.lower_bound_s = infinity;
    return solution;
  }
  SelectionOptions starting = options;
  if (start) starting.start = problem.choice_of(*start);
  const SelectionSolution selected = solve_selection(problem.selection(), starting);
  if (selected.feasible) solution = problem.solution_of(selected.choice);
  solution.lower_bound_s = selected.lower_bound;
  solution.hit_time_limit = selected.hit_time_limit;
  if (selected.feasible) return solution;
  solution.why_not = selected.proof;
  if (selected.least_memory > 0) solution.least_memory = selected.least_memory + request.reserve_bytes;
  return solution;
}

}  // namespace alpa
