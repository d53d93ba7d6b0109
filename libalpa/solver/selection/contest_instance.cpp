#include "libalpa/solver/selection/contest_instance.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/solver/selection/contest_json.h"

namespace alpa {
namespace {

constexpr std::int64_t forbidden_cost = 1'000'000'000'000'000'000;

[[noreturn]] void refuse_instance(const std::string& what) {
  throw Error(ErrorKind::input, what, "github.com/google/iopddl describes the format");
}

std::vector<double> costs_of(std::span<const std::int64_t> costs) {
  std::vector<double> result;
  result.reserve(costs.size());
  for (const std::int64_t cost : costs)
    result.push_back(cost >= forbidden_cost ? infinity : static_cast<double>(cost));
  return result;
}

int index_of(std::int64_t value, const std::string& what) {
  if (value < 0 || value > std::numeric_limits<int>::max())
    refuse_instance(fmt::format("{} is {}, not from 0 to {}", what, value, std::numeric_limits<int>::max()));
  return static_cast<int>(value);
}

void add_nodes(const ContestFields& fields, SelectionProblem& problem) {
  const std::size_t count = fields.node_costs.size();
  for (const auto& [name, lists] :
       {std::pair{"nodes.intervals", &fields.intervals}, {"nodes.usages", &fields.usages}})
    if (lists->size() != count)
      refuse_instance(fmt::format("nodes.costs has {} entries, {} has {}", count, name, lists->size()));
  for (std::size_t i = 0; i < count; ++i) {
    const auto costs = fields.node_costs[i], usages = fields.usages[i], interval = fields.intervals[i];
    if (costs.empty()) refuse_instance(fmt::format("nodes.costs[{}] is empty: the node has no strategy", i));
    if (usages.size() != costs.size())
      refuse_instance(fmt::format("nodes.usages[{}] has {} entries, nodes.costs[{}] has {}", i, usages.size(),
                                  i, costs.size()));
    if (interval.size() != 2)
      refuse_instance(fmt::format("nodes.intervals[{}] has {} entries, not 2", i, interval.size()));
    const auto name = fmt::format("nodes.intervals[{}]", i);
    const int begin = index_of(interval[0], name + "[0]"), end = index_of(interval[1], name + "[1]");
    if (begin > end) refuse_instance(fmt::format("{} ends at {}, before it begins at {}", name, end, begin));
    if (const auto least = *std::min_element(usages.begin(), usages.end()); least < 0)
      refuse_instance(fmt::format("nodes.usages[{}] has the negative entry {}", i, least));
    problem.nodes.push_back({costs_of(costs), {{begin, end, {usages.begin(), usages.end()}}}});
  }
}

void add_edges(const ContestFields& fields, SelectionProblem& problem) {
  if (fields.edges.size() != fields.edge_costs.size())
    refuse_instance(fmt::format("edges.nodes has {} entries, edges.costs has {}", fields.edges.size(),
                                fields.edge_costs.size()));
  for (std::size_t e = 0; e < fields.edges.size(); ++e) {
    const auto ends = fields.edges[e], costs = fields.edge_costs[e];
    const auto name = fmt::format("edges.nodes[{}]", e);
    if (ends.size() != 2) refuse_instance(fmt::format("{} has {} entries, not 2", name, ends.size()));
    for (const std::int64_t end : ends)
      if (end < 0 || end >= std::ssize(problem.nodes))
        refuse_instance(fmt::format("{} names node {} of {}", name, end, problem.nodes.size()));
    const int from = static_cast<int>(ends[0]), to = static_cast<int>(ends[1]);
    if (from == to) refuse_instance(fmt::format("{} joins node {} with itself", name, from));
    const std::size_t cells = problem.nodes[from].cost.size() * problem.nodes[to].cost.size();
    if (costs.size() != cells)
      refuse_instance(fmt::format("edges.costs[{}] has {} entries, not {} for the pairs of nodes {} and {}",
                                  e, costs.size(), cells, from, to));
    problem.edges.push_back({from, to, costs_of(costs)});
  }
}

}  // namespace

ContestInstance read_contest_instance(const std::filesystem::path& path) {
  return in_step(fmt::format("reading the instance '{}'", path.string()), [&] {
    ContestFields fields = read_contest_fields(path);
    ContestInstance instance;
    add_nodes(fields, instance.problem);
    add_edges(fields, instance.problem);
    if (fields.usage_limit) {
      if (*fields.usage_limit < 0) refuse_instance(fmt::format("usage_limit is {}", *fields.usage_limit));
      instance.problem.memory_limit = *fields.usage_limit;
    }
    instance.node_costs = std::move(fields.node_costs);
    instance.edge_costs = std::move(fields.edge_costs);
    return instance;
  });
}

Int128 contest_cost(const ContestInstance& instance, const std::vector<int>& choice) {
  Int128 cost = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) cost += instance.node_costs[i][choice[i]];
  for (std::size_t e = 0; e < instance.problem.edges.size(); ++e) {
    const auto& edge = instance.problem.edges[e];
    const std::size_t columns = instance.problem.nodes[edge.to].cost.size();
    cost += instance.edge_costs[e][choice[edge.from] * columns + choice[edge.to]];
  }
  return cost;
}

std::string decimal_text(Int128 value) {
  std::string digits;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    value /= 10;
  } while (value != 0);
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

}  // namespace alpa
