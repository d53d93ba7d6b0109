#include "libalpa/planner/stage/stage_problem.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "libalpa/base/checked.h"
#include "libalpa/base/deadline.h"
#include "libalpa/base/infinity.h"
#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/stage_copies.h"
#include "libalpa/planner/stage/stage_edges.h"
#include "libalpa/planner/stage/stage_memory.h"
#include "libalpa/planner/stage/stage_moves.h"
#include "libalpa/planner/stage/stage_sums.h"
#include "libalpa/planner/stage/stage_ties.h"

namespace alpa {

StageProblem::StageProblem(const PlanningGraph& planning, const StageRequest& request,
                           const MeshCosts& mesh_costs)
    : request_(request),
      scope_(planning, request_),
      mesh_costs_(mesh_costs),
      stage_(stage_variables(scope_, request_, mesh_costs)),
      reader_(request_, scope_, mesh_costs, stage_) {
  if (stage_.why_not.empty()) add_sums_of_step(scope_, mesh_costs_, stage_);
  if (stage_.why_not.empty()) stage_.ties = limit_ties(scope_, mesh_costs_, stage_);
  if (stage_.why_not.empty()) add_memory_over_time(scope_, request_, mesh_costs_, stage_);
  if (stage_.why_not.empty()) add_copies_of_states(scope_, mesh_costs_, stage_);
  if (stage_.why_not.empty()) add_moves_of_states(scope_, request_, mesh_costs_, stage_);
  if (stage_.why_not.empty()) add_moves_of_activations(scope_, request_, mesh_costs_, stage_);
  if (stage_.why_not.empty() && most_bytes().value_or(kMostSelectionBytes + 1) > kMostSelectionBytes)
    stage_.why_not = "its memory does not fit into 64 bits";
  if (stage_.why_not.empty()) make_selection();
}

/// No choice takes more; nothing where 64 bits do not count it.
std::optional<std::int64_t> StageProblem::most_bytes() const {
  const auto most = [](const std::vector<std::int64_t>& bytes) {
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  };
  std::optional<std::int64_t> sum = request_.reserve_bytes;
  for (const StageVariable& v : stage_.variables) {
    sum = checked_sum(sum, checked_product(most(v.per_micro_batch), request_.in_flight));
    sum = checked_sum(sum, most(v.resident));
    for (const auto* all : {&v.held, &v.messages})
      for (const SelectionProblem::Memory& held : *all) sum = checked_sum(sum, most(held.bytes));
  }
  for (const StageConversion& conversion : stage_.conversions) sum = checked_sum(sum, conversion.most_bytes);
  return sum;
}

void StageProblem::make_selection() {
  for (const StageVariable& v : stage_.variables) {
    std::vector<std::int64_t> lasting;
    for (std::size_t c = 0; c < v.choices.size(); ++c)
      lasting.push_back(v.resident[c] + request_.in_flight * v.per_micro_batch[c]);
    SelectionProblem::Node node{{}, v.held};
    for (std::size_t c = 0; c < v.choices.size(); ++c)
      node.cost.push_back(v.cost[c] - (1 - request_.update_weight) * reader_.cost_once(v, c));
    if (std::ranges::any_of(lasting, [](std::int64_t bytes) { return bytes > 0; }))
      node.memory.push_back({0, stage_.clock, std::move(lasting)});
    node.memory.insert(node.memory.end(), v.messages.begin(), v.messages.end());
    problem_.nodes.push_back(std::move(node));
  }
  for (const auto& [edge, flow] : stage_.edges) {
    const std::size_t rows = variable(edge.from).choices.size(), columns = variable(edge.to).choices.size();
    const double weight = edge.phase == Phase::update ? request_.update_weight : 1;
    const double runs = weight * runs_per_step(request_, edge.phase) * flow.count;
    if (edge.from == edge.to) {
      auto& cost = problem_.nodes[edge.from].cost;
      for (std::size_t c = 0; c < rows; ++c) cost[c] += runs * edge_seconds(stage_, edge, c, mesh_costs_)[c];
      continue;
    }
    SelectionProblem::Edge priced{edge.from, edge.to, {}};
    priced.cost.reserve(rows * columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (const double seconds : edge_seconds(stage_, edge, r, mesh_costs_))
        priced.cost.push_back(runs * seconds);
    problem_.edges.push_back(std::move(priced));
  }
  for (const StageTie& tie : stage_.ties) {
    SelectionProblem::Edge forbidden{tie.from, tie.to, {}};
    for (const bool allowed : tie.allowed) forbidden.cost.push_back(allowed ? 0 : infinity);
    problem_.edges.push_back(std::move(forbidden));
  }
  problem_.memory_limit =
      std::max<std::int64_t>(0, mesh_costs_.costs().cluster().memory_bytes - request_.reserve_bytes);
  refined_.resize(static_cast<std::size_t>(stage_.clock));
}

/// Memory that depends on several decisions: a node that follows them.
int StageProblem::node_of_conversion(std::size_t index) {
  const auto known = std::ranges::find(held_conversions_, index);
  const int variables = static_cast<int>(stage_.variables.size());
  if (known != held_conversions_.end())
    return variables + static_cast<int>(known - held_conversions_.begin());
  held_conversions_.push_back(index);
  const StageConversion& conversion = stage_.conversions[index];
  const ConversionCases& of = cases_of(index);
  const int added = static_cast<int>(problem_.nodes.size());
  const std::size_t cases = of.cases.size();
  problem_.nodes.push_back({std::vector<double>(cases, 0.0), {}});
  const auto tie = [&](int to, const auto& allowed) {
    SelectionProblem::Edge edge{to, added, {}};
    for (std::size_t choice = 0; choice < variable(to).choices.size(); ++choice)
      for (std::size_t c = 0; c < cases; ++c) edge.cost.push_back(allowed(choice, c) ? 0 : infinity);
    problem_.edges.push_back(std::move(edge));
  };
  tie(conversion.edge.to,
      [&](std::size_t choice, std::size_t c) { return of.end_of[choice] == of.cases[c].end; });
  tie(conversion.edge.from, [&](std::size_t choice, std::size_t c) {
    const std::vector<int>& cases_of_start = of.case_of[of.start_of[choice]];
    return std::ranges::find(cases_of_start, static_cast<int>(c)) != cases_of_start.end();
  });
  if (conversion.rest >= 0)
    tie(conversion.rest, [&](std::size_t choice, std::size_t c) {
      return variable(conversion.rest).as_made[choice] == of.cases[c].as_made;
    });
  return added;
}

const ConversionCases& StageProblem::cases_of(std::size_t conversion) {
  const auto [at, is_new] = cases_.try_emplace(conversion);
  if (is_new) at->second = alpa::cases_of(stage_, stage_.conversions[conversion], mesh_costs_);
  return at->second;
}

bool StageProblem::rests_as_made(const StageConversion& conversion, const std::vector<int>& choice) const {
  return conversion.rest >= 0 && variable(conversion.rest).as_made[choice[conversion.rest]];
}

std::size_t StageProblem::case_of(std::size_t index, const std::vector<int>& choice) const {
  const StageConversion& conversion = stage_.conversions[index];
  const ConversionCases& of = cases_.at(index);
  const int end = of.end_of[choice[conversion.edge.to]], start = of.start_of[choice[conversion.edge.from]];
  return static_cast<std::size_t>(
      of.case_of[start][ConversionCases::place(end, rests_as_made(conversion, choice))]);
}

template <class OfVariable, class OfConversion>
std::vector<std::int64_t> StageProblem::held_over_time(const OfVariable& of_variable,
                                                       const OfConversion& of_conversion) const {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(stage_.clock) + 1);
  const auto hold = [&](int begin, int end, std::int64_t held) {
    bytes[begin] += held;
    bytes[end] -= held;
  };
  for (std::size_t i = 0; i < stage_.variables.size(); ++i)
    for (const auto& [begin, end, held] : problem_.nodes[i].memory) hold(begin, end, of_variable(i, held));
  for (std::size_t i = 0; i < stage_.conversions.size(); ++i) {
    const auto& pieces = stage_.conversions[i].pieces;
    const std::vector<std::int64_t> held = of_conversion(i);
    for (std::size_t p = 0; p < pieces.size(); ++p)
      if (const auto& [begin, end] = pieces[p]; begin < end) hold(begin, end, held[p]);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  bytes.pop_back();
  return bytes;
}

std::vector<std::int64_t> StageProblem::bytes_over_time(const std::vector<int>& choice) const {
  return held_over_time([&](std::size_t i, const std::vector<std::int64_t>& held) { return held[choice[i]]; },
                        [&](std::size_t i) {
                          const StageConversion& conversion = stage_.conversions[i];
                          const StageEdge& edge = conversion.edge;
                          return conversion.held(start_of_edge(stage_, edge, choice[edge.from], mesh_costs_),
                                                 end_of_edge(stage_, edge, choice[edge.to], mesh_costs_),
                                                 rests_as_made(conversion, choice));
                        });
}

bool StageProblem::fits(const std::vector<int>& choice) const {
  return std::ranges::max(bytes_over_time(choice)) <= problem_.memory_limit;
}

void StageProblem::refine(const std::vector<int>& choice) { hold_conversions_where(bytes_over_time(choice)); }

void StageProblem::refine_everywhere() {
  hold_conversions_where(held_over_time(
      [](std::size_t, const std::vector<std::int64_t>& held) { return std::ranges::max(held); },
      [&](std::size_t i) {
        std::vector<std::int64_t> most(stage_.conversions[i].pieces.size(), 0);
        for (const ConversionCases::Case& c : cases_of(i).cases)
          for (std::size_t p = 0; p < most.size(); ++p) most[p] = std::max(most[p], c.bytes[p]);
        return most;
      }));
}

/// At ticks at which those bytes are too many.
void StageProblem::hold_conversions_where(const std::vector<std::int64_t>& bytes) {
  std::vector<std::pair<int, int>> added;  // ticks that follow each other
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    if (bytes[t] <= problem_.memory_limit || refined_[t]) continue;
    refined_[t] = true;
    const int tick = static_cast<int>(t);
    if (added.empty() || added.back().second < tick) added.push_back({tick, tick});
    added.back().second = tick + 1;
  }
  for (std::size_t i = 0; i < stage_.conversions.size(); ++i)
    for (std::size_t p = 0; p < stage_.conversions[i].pieces.size(); ++p)
      for (const auto& [begin, end] : added) {
        const int first = std::max(begin, stage_.conversions[i].pieces[p].first),
                  last = std::min(end, stage_.conversions[i].pieces[p].second);
        if (first >= last) continue;
        std::vector<std::int64_t> held;
        for (const ConversionCases::Case& c : cases_of(i).cases) held.push_back(c.bytes[p]);
        if (std::ranges::max(held) == 0) continue;
        const int node = node_of_conversion(i);
        problem_.nodes[node].memory.push_back({first, last, std::move(held)});
      }
}

SelectionProblem StageProblem::priced(const MemoryPrice& price) const { return priced(price, false, 1); }
std::vector<SelectionProblem> StageProblem::priced_layers(const MemoryPrice& price,
                                                          double update_weight) const {
  const SelectionProblem apart = priced(price, true, update_weight);
  std::vector<SelectionProblem> layers(static_cast<std::size_t>(request_.end_layer - request_.first_layer));
  const auto of_layer = [&](int variable) -> SelectionProblem& {
    return layers[layer_of(variable) - request_.first_layer];
  };
  std::vector<int> within;  // its layer
  for (std::size_t i = 0; i < apart.nodes.size(); ++i) {
    std::vector<SelectionProblem::Node>& nodes = of_layer(static_cast<int>(i)).nodes;
    within.push_back(static_cast<int>(nodes.size()));
    nodes.push_back(apart.nodes[i]);
  }
  for (const SelectionProblem::Edge& edge : apart.edges)
    of_layer(edge.to).edges.push_back({within[edge.from], within[edge.to], edge.cost});
  return layers;
}

SelectionProblem StageProblem::priced(const MemoryPrice& price, bool apart, double update_weight) const {
  SelectionProblem priced;
  for (const StageVariable& v : stage_.variables) {
    SelectionProblem::Node& node = priced.nodes.emplace_back();
    for (std::size_t c = 0; c < v.choices.size(); ++c)
      node.cost.push_back(v.cost[c] - (1 - update_weight) * reader_.cost_once(v, c) +
                          price.per_byte_s * (static_cast<double>(v.resident[c]) +
                                              price.in_flight * static_cast<double>(v.per_micro_batch[c])));
  }
  // Edges of the selection come in their order, but for those to the same variable, which are in no problem;
  // then ties.
  std::size_t next = 0;
  for (const auto& [edge, flow] : stage_.edges) {
    const double weight = edge.phase == Phase::update ? update_weight : 1;
    if (edge.from == edge.to) {
      const double runs = weight * runs_per_step(request_, edge.phase) * flow.count;
      for (std::size_t c = 0; !apart && c < priced.nodes[edge.from].cost.size(); ++c)
        priced.nodes[edge.from].cost[c] += runs * edge_seconds(stage_, edge, c, mesh_costs_)[c];
      continue;
    }
    const SelectionProblem::Edge& known = problem_.edges[next++];
    if (!apart || (layer_of(edge.from) == layer_of(edge.to) && flow.stays && weight > 0)) {
      priced.edges.push_back(known);
      for (double& cost : priced.edges.back().cost) cost *= weight;
    }
  }
  for (const StageTie& tie : stage_.ties) {
    const SelectionProblem::Edge& known = problem_.edges[next++];
    if (!apart || (layer_of(tie.from) == layer_of(tie.to) && tie.stays)) priced.edges.push_back(known);
  }
  return priced;
}

std::vector<LayerCosts> StageProblem::layer_costs(const std::vector<int>& choice) const {
  std::vector<LayerCosts> costs = reader_.layer_costs(choice);
  const StageClock clock(scope_);
  const std::vector<std::int64_t> bytes = bytes_over_time(choice);
  std::int64_t lasting = 0;
  for (std::size_t i = 0; i < stage_.variables.size(); ++i)
    lasting += stage_.variables[i].resident[choice[i]] +
               request_.in_flight * stage_.variables[i].per_micro_batch[choice[i]];
  for (int layer = 0; layer < static_cast<int>(costs.size()); ++layer)
    for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) {
      const auto [begin, end] = clock.of_layer(request_.first_layer + layer, segment);
      for (int tick = begin; tick < end; ++tick)
        costs[layer].working_bytes = std::max(costs[layer].working_bytes, bytes[tick] - lasting);
    }
  return costs;
}

std::vector<int> StageProblem::with_conversions(std::vector<int> choice) const {
  for (const std::size_t conversion : held_conversions_)
    choice.push_back(static_cast<int>(case_of(conversion, choice)));
  return choice;
}

std::vector<int> StageProblem::decisions(std::vector<int> choice) const {
  choice.resize(stage_.variables.size());
  return choice;
}

StageSolution StageProblem::solution_of(const std::vector<int>& choice) const {
  StageSolution solution = reader_.solution_of(choice);
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    solution.micro_batch_bytes += stage_.variables[i].per_micro_batch[choice[i]];
    solution.lasting_bytes += stage_.variables[i].resident[choice[i]];
  }
  solution.resident_bytes =
      std::ranges::max(bytes_over_time(choice)) - request_.in_flight * solution.micro_batch_bytes;
  return solution;
}

StageSolution solve_stage(const PlanningGraph& planning, const StageRequest& request,
                          const MeshCosts& mesh_costs, const SelectionOptions& options,
                          const StageSolution* start) {
  StageProblem problem(planning, request, mesh_costs);
  StageSolution solution;
  if (!problem.why_not().empty()) {
    solution.why_not = problem.why_not();
    solution.lower_bound_s = infinity;
    return solution;
  }
  // Each round knows the memory of conversions where the choice of the round before did not fit; so a few
  // are mostly enough, and one more, which knows it everywhere, always.
  constexpr int rounds = 4;
  const std::vector<int> known = start ? problem.reader().choice_of(*start) : std::vector<int>{};
  const Deadline deadline(options.time_limit_s, options.stop);
  SelectionSolution selected;
  std::vector<int> choice;
  double bound = 0;
  for (int round = 0;; ++round) {
    SelectionOptions now = options;
    now.time_limit_s = std::max(0.0, deadline.seconds_left());
    if (!known.empty()) now.start = problem.with_conversions(known);
    selected = solve_selection(problem.selection(), now);
    bound = std::max(bound, selected.lower_bound);
    if (!selected.feasible) break;
    choice = problem.decisions(selected.choice);
    if (problem.fits(choice)) break;
    if (deadline.passed()) {
      choice = known;
      selected.feasible = !known.empty() && problem.fits(known);
      selected.hit_time_limit = true;
      selected.proof = "no choice found that fits, time limit";
      break;
    }
    if (round < rounds)
      problem.refine(choice);
    else
      problem.refine_everywhere();
  }
  if (selected.feasible) solution = problem.solution_of(choice);
  solution.is_solved = true;
  solution.lower_bound_s = bound;
  solution.hit_time_limit = selected.hit_time_limit;
  if (selected.feasible) return solution;
  solution.why_not = selected.proof;
  if (selected.least_memory > 0) solution.least_memory = selected.least_memory + request.reserve_bytes;
  return solution;
}

}  // namespace alpa
