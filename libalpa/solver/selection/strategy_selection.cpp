#include "libalpa/solver/selection/strategy_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/least_memory.h"
#include "libalpa/solver/selection/presolve.h"
#include "libalpa/solver/selection/selection_cache.h"
#include "libalpa/solver/selection/selection_search.h"

namespace alpa {
namespace {

constexpr const char* problem_hint =
    "this is a fault of the program that set up the problem, please report it";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::input, "malformed strategy-selection problem: " + what, problem_hint);
}

void check_costs(const std::vector<double>& costs, const std::string& whose) {
  for (double cost : costs) {
    if (std::isnan(cost) || cost == -infinity) {
      refuse(fmt::format("{} has a cost that is {}", whose, cost));
    }
  }
}

void check_node(const SelectionProblem::Node& node, std::size_t i) {
  const auto name = fmt::format("node {}", i);
  if (node.cost.empty()) refuse(name + " has no strategy");
  check_costs(node.cost, name);
  for (const auto& [begin, end, memory] : node.memory) {
    if (memory.size() != node.cost.size())
      refuse(fmt::format("{} has {} costs and {} memory sizes", name, node.cost.size(), memory.size()));
    if (begin > end) refuse(fmt::format("{} lives from {} to {}", name, begin, end));
    for (auto bytes : memory)
      if (bytes < 0) refuse(fmt::format("{} has {} bytes of memory", name, bytes));
  }
}

void check(const SelectionProblem& problem) {
  const int nodes = static_cast<int>(problem.nodes.size());
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) check_node(problem.nodes[i], i);
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    const auto& edge = problem.edges[e];
    const auto name = fmt::format("edge {} from {} to {}", e, edge.from, edge.to);
    if (edge.from < 0 || edge.to < 0 || edge.from >= nodes || edge.to >= nodes) {
      refuse(fmt::format("{} leaves the {} nodes", name, nodes));
    }
    if (edge.from == edge.to) refuse(name + " is a loop");
    const std::size_t cells = problem.nodes[edge.from].cost.size() * problem.nodes[edge.to].cost.size();
    if (edge.cost.size() != cells)
      refuse(fmt::format("{} has {} costs, not {}", name, edge.cost.size(), cells));
    check_costs(edge.cost, name);
  }
}

void check_memory_range(const SelectionProblem& problem) {
  std::map<int, double> change;
  for (const auto& node : problem.nodes)
    for (const auto& [begin, end, bytes] : node.memory) {
      const auto most = static_cast<double>(*std::max_element(bytes.begin(), bytes.end()));
      change[begin] += most;
      change[end] -= most;
    }
  double now = 0, most = 0;
  for (const auto& [time, bytes] : change) most = std::max(most, now += bytes);
  if (most > static_cast<double>(kMostSelectionBytes))
    refuse(fmt::format("memory sizes add up to {:.3g} bytes, beyond 64 bits", most));
}

void check_choice(const SelectionProblem& problem, const std::vector<int>& choice) {
  if (choice.size() != problem.nodes.size()) {
    refuse(fmt::format("a choice of {} strategies for {} nodes", choice.size(), problem.nodes.size()));
  }
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] < 0 || choice[i] >= std::ssize(problem.nodes[i].cost)) {
      refuse(fmt::format("strategy {} of node {}, which has {}", choice[i], i, problem.nodes[i].cost.size()));
    }
  }
}

const char* end_of(const NetworkSolution& found) {
  return found.hit_time_limit ? "time limit" : "effort limit";
}

// Proven to have no choice that fits, or none was found.
SelectionSolution without_choice(const SelectionProblem& problem, const SelectionNetwork& network,
                                 const NetworkSolution& found, double cutoff) {
  SelectionSolution solution;
  solution.cost = infinity;
  solution.lower_bound = found.infeasible ? solution.cost : found.bound;
  solution.certified_bound = found.certified_bound;
  solution.hit_time_limit = found.hit_time_limit;
  solution.by_effort_alone = found.by_effort_alone;
  if (!found.infeasible && found.bound >= cutoff) {
    solution.proof = "beyond the cutoff";
    return solution;
  }
  if (found.infeasible && presolve(without_memory(network)).verdict == ReducedNetwork::Verdict::forbidden) {
    solution.proof = "infeasible: forbidden strategies and pairs leave no choice";
    return solution;
  }
  if (problem.memory_limit >= 0) solution.least_memory = least_peak_memory(network, problem.memory_limit);
  if (found.infeasible) solution.least_memory = std::max(solution.least_memory, problem.memory_limit + 1);
  solution.proof = problem.memory_limit >= 0 && solution.least_memory > problem.memory_limit
                       ? "infeasible: memory"
                       : fmt::format("no choice found that fits, {}", end_of(found));
  return solution;
}

std::string proof_text(const NetworkSolution& found, double gap, const SelectionOptions& options) {
  if (gap <= options.gap) return "optimal";
  if (found.incumbent.cost <= options.enough && gap <= options.gap_of_enough)
    return fmt::format("gap {:.2g} %, good enough", 100 * gap);
  return fmt::format("gap {:.2g} %, {}", 100 * gap, end_of(found));
}

}  // namespace

double selection_cost(const SelectionProblem& problem, const std::vector<int>& choice) {
  check_choice(problem, choice);
  double cost = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) cost += problem.nodes[i].cost[choice[i]];
  for (const auto& edge : problem.edges) {
    cost += edge.cost[choice[edge.from] * problem.nodes[edge.to].cost.size() + choice[edge.to]];
  }
  return cost;
}

std::int64_t selection_peak_memory(const SelectionProblem& problem, const std::vector<int>& choice) {
  check_choice(problem, choice);
  std::map<int, std::int64_t> change;  // at each time where a node begins or ends
  for (std::size_t i = 0; i < choice.size(); ++i) {
    for (const auto& [begin, end, bytes] : problem.nodes[i].memory) {
      if (begin >= end) continue;
      change[begin] += bytes[choice[i]];
      change[end] -= bytes[choice[i]];
    }
  }
  std::int64_t now = 0, peak = 0;
  for (const auto& [time, bytes] : change) peak = std::max(peak, now += bytes);
  return peak;
}

namespace {

SelectionSolution solve_anew(const SelectionProblem& problem, const SelectionOptions& options) {
  const SelectionNetwork network = selection_network(problem);
  const NetworkSolution found = solve_network(network, options);
  if (!found.incumbent.exists()) return without_choice(problem, network, found, options.cutoff);

  SelectionSolution solution;
  solution.feasible = true;
  solution.choice = found.incumbent.choice;
  solution.cost = selection_cost(problem, solution.choice);
  solution.peak_memory = selection_peak_memory(problem, solution.choice);
  assert(problem.memory_limit < 0 || solution.peak_memory <= problem.memory_limit);
  solution.lower_bound = std::min(found.bound, solution.cost);
  solution.certified_bound = std::min(found.certified_bound, solution.cost);
  solution.hit_time_limit = found.hit_time_limit;
  solution.by_effort_alone = found.by_effort_alone;
  if (solution.lower_bound >= options.cutoff) {
    solution.feasible = false;
    solution.proof = "beyond the cutoff";
    return solution;
  }
  const double distance = solution.cost - solution.lower_bound;
  solution.proof = proof_text(found, distance == 0 ? 0 : distance / std::abs(solution.cost), options);
  return solution;
}

/// Not of another problem with the same key.
bool is_of(const SelectionProblem& problem, const SelectionSolution& known) {
  if (known.choice.empty()) return !known.feasible || problem.nodes.empty();
  if (known.choice.size() != problem.nodes.size()) return false;
  for (std::size_t i = 0; i < known.choice.size(); ++i)
    if (known.choice[i] < 0 || known.choice[i] >= std::ssize(problem.nodes[i].cost)) return false;
  return selection_cost(problem, known.choice) == known.cost;
}

}  // namespace

SelectionSolution solve_selection(const SelectionProblem& problem, const SelectionOptions& options) {
  check(problem);
  check_memory_range(problem);
  if (!options.start.empty()) check_choice(problem, options.start);
  if (options.cache == nullptr) return solve_anew(problem, options);
  const Fingerprint key = selection_key(problem, options);
  if (const auto known = options.cache->find(key); known && is_of(problem, *known)) return *known;
  const double began_s = monotonic_s();
  SelectionSolution solution = solve_anew(problem, options);
  if (solution.by_effort_alone) options.cache->keep(key, solution, monotonic_s() - began_s);
  return solution;
}

}  // namespace alpa
