// Solves one instance of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism and prints cost,
// bound, gap and time.
//
//   zcat INSTANCE.json.gz | bench_solver [--time SECONDS] [--effort N] [--gap X] [--solution FILE]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "libalpa/base/error.h"
#include "libalpa/solver/selection/strategy_selection.h"

namespace {

double cost_of(const nlohmann::json& number) {
  constexpr double forbidden = 1e18;
  const double cost = number.get<double>();
  return cost >= forbidden ? std::numeric_limits<double>::infinity() : cost;
}

alpa::SelectionProblem problem_of(const nlohmann::json& json) {
  alpa::SelectionProblem problem;
  const auto& nodes = json.at("nodes");
  for (std::size_t i = 0; i < nodes.at("costs").size(); ++i) {
    auto& node = problem.nodes.emplace_back();
    for (const auto& cost : nodes["costs"][i]) node.cost.push_back(cost_of(cost));
    node.memory = {{nodes.at("intervals")[i][0], nodes["intervals"][i][1],
                    nodes.at("usages")[i].get<std::vector<std::int64_t>>()}};
  }
  const auto& edges = json.at("edges");
  for (std::size_t e = 0; e < edges.at("nodes").size(); ++e) {
    auto& edge = problem.edges.emplace_back();
    edge.from = edges["nodes"][e][0];
    edge.to = edges["nodes"][e][1];
    for (const auto& cost : edges.at("costs")[e]) edge.cost.push_back(cost_of(cost));
  }
  problem.memory_limit = json.value("usage_limit", std::int64_t{-1});
  return problem;
}

}  // namespace

int main(int argc, char** argv) try {
  alpa::SelectionOptions options;
  std::string solution_file;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string name = argv[k], value = argv[k + 1];
    if (name == "--time") options.time_limit_s = std::stod(value);
    if (name == "--effort") options.effort = std::stoll(value);
    if (name == "--gap") options.gap = std::stod(value);
    if (name == "--solution") solution_file = value;
  }
  const auto problem = problem_of(nlohmann::json::parse(std::cin).at("problem"));
  const auto start = std::chrono::steady_clock::now();
  const auto solution = alpa::solve_selection(problem, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("cost %.0f  bound %.0f  gap %.4f %%  peak/limit %.4f  %.2f s  (%s)\n", solution.cost,
              solution.lower_bound, 100 * solution.gap(),
              static_cast<double>(solution.peak_memory) / static_cast<double>(problem.memory_limit),
              seconds.count(), solution.proof.c_str());
  if (!solution_file.empty()) std::ofstream(solution_file) << nlohmann::json(solution.choice) << "\n";
  return solution.feasible ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_solver: %s\n", error.what());
  return EXIT_FAILURE;
}
