#include "libalpa/planner/stage_problem.h"

#include <algorithm>
#include <optional>

#include "libalpa/base/checked.h"
#include "libalpa/base/infinity.h"
#include "libalpa/planner/stage_variables.h"

namespace alpa {
namespace {

class StageProblem {
 public:
  StageProblem(const StageScope& scope, const StageRequest& request, const MeshPrices& prices)
      : scope_(scope), request_(request), prices_(prices), stage_(stage_variables(scope, request, prices)) {}

  StageSolution solve(SelectionOptions options, const StageSolution* start) {
    StageSolution solution;
    if (stage_.why_not.empty() && !most_bytes()) stage_.why_not = "its memory does not fit into 64 bits";
    if (!stage_.why_not.empty()) {
      solution.why_not = stage_.why_not;
      solution.lower_bound_s = infinity;
      return solution;
    }
    const SelectionProblem problem = selection_problem();
    if (start) options.start = choice_of(*start);
    const SelectionSolution selected = solve_selection(problem, options);
    solution.lower_bound_s = selected.lower_bound;
    solution.hit_time_limit = selected.hit_time_limit;
    if (!selected.feasible) {
      solution.why_not = selected.proof;
      if (selected.least_memory > 0) solution.least_memory = selected.least_memory + request_.reserve_bytes;
      return solution;
    }
    solution.feasible = true;
    extract(selected.choice, solution);
    return solution;
  }

 private:
  const StageVariable& variable(int index) const { return stage_.variables[static_cast<std::size_t>(index)]; }
  const NodeOption& option(const StageVariable& v, std::size_t choice) const {
    return prices_.options(v.node)[static_cast<std::size_t>(v.choices[choice])];
  }

  std::optional<std::int64_t> most_bytes() const;
  SelectionProblem selection_problem();
  void hold(SelectionProblem&, int node, const Holding&) const;
  double conversion_s(const StageEdge&, std::size_t from, std::size_t to) const;
  std::vector<int> choice_of(const StageSolution&) const;
  void extract(const std::vector<int>& choice, StageSolution&) const;
  ShardingSpec resting_layout(int value, const std::vector<int>& choice) const;
  double seconds(const std::vector<int>& choice, bool update) const;

  const StageScope& scope_;
  const StageRequest& request_;
  const MeshPrices& prices_;
  StageVariables stage_;
  std::vector<int> doubles_;  ///< variable of each further node of the selection problem
};

double StageProblem::conversion_s(const StageEdge& edge, std::size_t from, std::size_t to) const {
  const int start = layout_at_start(stage_, edge, from, prices_),
            end = layout_at_end(stage_, edge, to, prices_);
  return start == end ? 0 : prices_.conversion_seconds(edge.value, start)[static_cast<std::size_t>(end)];
}

/// Memory at times of its own: a node that chooses as `node` does.
void StageProblem::hold(SelectionProblem& problem, int node, const Holding& holding) const {
  const std::size_t choices = holding.bytes.size();
  const int twin = static_cast<int>(problem.nodes.size());
  problem.nodes.push_back({std::vector<double>(choices, 0.0), holding.bytes, holding.begin, holding.end});
  std::vector<double> same(choices * choices, infinity);
  for (std::size_t c = 0; c < choices; ++c) same[c * choices + c] = 0;
  problem.edges.push_back({node, twin, std::move(same)});
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

SelectionProblem StageProblem::selection_problem() {
  SelectionProblem problem;
  for (const StageVariable& v : stage_.variables) {
    std::vector<std::int64_t> lasting;
    for (std::size_t c = 0; c < v.choices.size(); ++c)
      lasting.push_back(v.fixed[c] + request_.in_flight * v.slot[c]);
    problem.nodes.push_back({v.cost, std::move(lasting), 0, std::max(stage_.clock, 1)});
  }
  for (int i = 0; i < static_cast<int>(stage_.variables.size()); ++i) {
    const auto needed = [](const Holding& h) {
      return std::any_of(h.bytes.begin(), h.bytes.end(), [](std::int64_t b) { return b > 0; });
    };
    SelectionProblem::Node& node = problem.nodes[static_cast<std::size_t>(i)];
    const bool lasts =
        std::any_of(node.memory.begin(), node.memory.end(), [](std::int64_t b) { return b > 0; });
    for (const Holding* holding : {&variable(i).passing, &variable(i).again}) {
      if (!needed(*holding)) continue;
      doubles_.push_back(i);
      hold(problem, i, *holding);
    }
    if (!lasts) problem.nodes[static_cast<std::size_t>(i)].end = 0;
  }
  for (const auto& [edge, count] : stage_.edges) {
    const std::size_t rows = variable(edge.from).choices.size(), columns = variable(edge.to).choices.size();
    const double runs = runs_per_step(request_, edge.phase) * count;
    if (edge.from == edge.to) {
      auto& cost = problem.nodes[static_cast<std::size_t>(edge.from)].cost;
      for (std::size_t c = 0; c < rows; ++c) cost[c] += runs * conversion_s(edge, c, c);
      continue;
    }
    std::vector<int> ends;
    for (std::size_t c = 0; c < columns; ++c) ends.push_back(layout_at_end(stage_, edge, c, prices_));
    SelectionProblem::Edge priced{edge.from, edge.to, {}};
    priced.cost.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      const int start = layout_at_start(stage_, edge, r, prices_);
      const std::vector<double>& from_start = prices_.conversion_seconds(edge.value, start);
      for (const int end : ends)
        priced.cost.push_back(start == end ? 0 : runs * from_start[static_cast<std::size_t>(end)]);
    }
    problem.edges.push_back(std::move(priced));
  }
  problem.memory_limit =
      std::max<std::int64_t>(0, prices_.costs().cluster().memory_bytes - request_.reserve_bytes);
  return problem;
}

/// The choices that make this solution; empty where the stage lacks one of them.
std::vector<int> StageProblem::choice_of(const StageSolution& solution) const {
  std::vector<int> choice;
  for (const StageVariable& v : stage_.variables) {
    std::size_t c = 0;
    if (v.node >= 0) {
      const auto at = solution.node_strategy.find(v.node);
      if (at == solution.node_strategy.end()) return {};
      while (c < v.choices.size() && option(v, c).strategy != at->second) ++c;
    } else {
      auto at = solution.value_layout.find(v.value);
      if (at == solution.value_layout.end()) at = solution.arriving.find(v.value);
      if (at == solution.arriving.end()) return {};
      while (c < v.choices.size() && prices_.layouts(v.value).spec(v.choices[c]) != at->second) ++c;
    }
    if (c == v.choices.size()) return {};
    choice.push_back(static_cast<int>(c));
  }
  for (const int same : doubles_) choice.push_back(choice[static_cast<std::size_t>(same)]);
  return choice;
}

ShardingSpec StageProblem::resting_layout(int value, const std::vector<int>& choice) const {
  const LayoutTable& table = prices_.layouts(value);
  const auto chosen = [&](int index) {
    return static_cast<std::size_t>(choice[static_cast<std::size_t>(index)]);
  };
  const auto own = stage_.of_value.find(scope_.canonical_value(value));
  if (own != stage_.of_value.end()) return table.spec(variable(own->second).choices[chosen(own->second)]);
  if (const int state = scope_.planning().state_after[static_cast<std::size_t>(value)]; state >= 0)
    return resting_layout(scope_.graph().states[static_cast<std::size_t>(state)].value, choice);
  const auto at_node = [&](int node, bool result) {
    const int index = stage_.of_node.at(scope_.canonical_node(node));
    const NodeOption& taken = option(variable(index), chosen(index));
    const Node& n = scope_.node(node);
    return table.spec(result ? taken.results[static_cast<std::size_t>(place_of(n.results, value))]
                             : taken.operands[static_cast<std::size_t>(place_of(n.operands, value))]);
  };
  // Optimizer state rests as its update takes it.
  if (scope_.value(value).kind == ValueKind::state)
    for (const int user : scope_.users(value)) return at_node(user, false);
  if (scope_.makes(value)) return at_node(scope_.value(value).producer, true);
  return replicated_spec(scope_.value(value).type.shape.size());
}

double StageProblem::seconds(const std::vector<int>& choice, bool update) const {
  double sum = 0;
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    const StageVariable& v = stage_.variables[i];
    const bool once = v.node >= 0 && scope_.node(v.node).phase == Phase::update;
    if (once == update) sum += v.cost[static_cast<std::size_t>(choice[i])];
  }
  for (const auto& [edge, count] : stage_.edges)
    if ((edge.phase == Phase::update) == update)
      sum += runs_per_step(request_, edge.phase) * count *
             conversion_s(edge, static_cast<std::size_t>(choice[static_cast<std::size_t>(edge.from)]),
                          static_cast<std::size_t>(choice[static_cast<std::size_t>(edge.to)]));
  return sum;
}

void StageProblem::extract(const std::vector<int>& choice, StageSolution& solution) const {
  for (const int n : scope_.nodes()) {
    const int index = stage_.of_node.at(scope_.canonical_node(n));
    solution.node_strategy[n] =
        option(variable(index), static_cast<std::size_t>(choice[static_cast<std::size_t>(index)])).strategy;
  }
  for (const int v : scope_.values()) {
    const Value& value = scope_.value(v);
    if (value.kind == ValueKind::input || v == scope_.graph().gradient_square_sum) continue;
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
}

}  // namespace

StageSolution solve_stage(const PlanningGraph& planning, const StageRequest& request,
                          const MeshPrices& prices, const SelectionOptions& options,
                          const StageSolution* start) {
  const StageScope scope(planning, request);
  return StageProblem(scope, request, prices).solve(options, start);
}

}  // namespace alpa
