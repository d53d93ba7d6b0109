#include "libalpa/solver/selection/selection_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libalpa/base/infinity.h"
#include "libalpa/solver/integer_program/solve_integer_program.h"
#include "libalpa/solver/selection/local_search.h"

namespace alpa {
namespace {

// Columns of a network's program: x per node and strategy, then y per edge and pair that costs no more than
// `at_most`.
class SelectionProgram {
 public:
  SelectionProgram(const SelectionNetwork& network, double scale, double at_most)
      : network_(network), scale_(scale), at_most_(at_most) {
    for (const auto& node : network.nodes) {
      first_column_.push_back(program_.columns());
      for (double cost : node.cost) {
        program_.add_entry(program_.add_column(cost * scale, true), 1);
      }
      program_.end_row(1, 1);
    }
    for (const auto& edge : network.edges) add_edge(edge);
    has_row_.assign(network.capacity.size(), false);
    alive_.resize(network.capacity.size());
    for (int i = 0; i < std::ssize(network.nodes); ++i) {
      for (const auto& piece : network.nodes[i].pieces) {
        for (int t = piece.begin; t < piece.end; ++t) alive_[t].emplace_back(i, &piece);
      }
    }
  }

  const IntegerProgram& program() const { return program_; }

  bool has_row(int time) const { return has_row_[time]; }

  // Memory as a fraction of the capacity at that time.
  void add_memory_row(int time) {
    if (has_row_[time]) return;
    has_row_[time] = true;
    const double unit = std::max(1.0, static_cast<double>(network_.capacity[time]));
    for (const auto& [node, piece] : alive_[time]) {
      for (std::size_t a = 0; a < piece->memory.size(); ++a) {
        const double share = static_cast<double>(piece->memory[a]) / unit;
        if (share > 0) program_.add_entry(first_column_[node] + static_cast<int>(a), share);
      }
    }
    program_.end_row(-infinity, static_cast<double>(network_.capacity[time]) / unit);
  }

  std::int64_t memory_entries() const {
    std::int64_t entries = 0;
    for (const auto& alive : alive_) {
      for (const auto& [node, piece] : alive) entries += std::ssize(piece->memory);
    }
    return entries;
  }

  std::vector<double> columns_of(const std::vector<int>& choice) const {
    std::vector<double> columns(program_.columns(), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) columns[first_column_[i] + choice[i]] = 1;
    return columns;
  }

  std::vector<int> choice_of(const std::vector<double>& columns) const {
    std::vector<int> choice;
    for (int i = 0; i < std::ssize(network_.nodes); ++i) {
      const auto begin = columns.begin() + first_column_[i];
      choice.push_back(static_cast<int>(std::max_element(begin, begin + network_.strategies(i)) - begin));
    }
    return choice;
  }

 private:
  void add_edge(const SelectionNetwork::Edge& edge) {
    const int rows = network_.strategies(edge.from), width = network_.strategies(edge.to);
    std::vector<int> column(edge.cost.size(), -1);
    for (std::size_t k = 0; k < column.size(); ++k) {
      if (edge.cost[k] <= at_most_) column[k] = program_.add_column(edge.cost[k] * scale_, false);
    }
    const auto tie = [&](int x, int count, int start, int stride) {
      for (int k = 0; k < count; ++k) {
        if (const int y = column[start + k * stride]; y >= 0) program_.add_entry(y, 1);
      }
      program_.add_entry(x, -1);
      program_.end_row(0, 0);
    };
    for (int a = 0; a < rows; ++a) tie(first_column_[edge.from] + a, width, a * width, 1);
    for (int b = 0; b < width; ++b) tie(first_column_[edge.to] + b, rows, b, width);
  }

  const SelectionNetwork& network_;
  double scale_, at_most_;
  IntegerProgram program_;
  std::vector<int> first_column_;
  std::vector<char> has_row_;
  std::vector<std::vector<std::pair<int, const SelectionNetwork::Piece*>>> alive_;  // per time point
};

// Costs are scaled so that the dearest choice that is wanted, less the constant, is this; CBC's tolerances
// are absolute and near 1e-7.
constexpr double target_magnitude = 1e4;

double magnitude(const SelectionNetwork& network, double most_wanted) {
  if (most_wanted < infinity) return std::max(most_wanted - network.constant, 0.0);
  double total = 0;  // of the dearest allowed strategy of each node
  for (const auto& node : network.nodes) {
    double most = 0;
    for (double cost : node.cost) most = std::isinf(cost) ? most : std::max(most, std::abs(cost));
    total += most;
  }
  return total;
}

}  // namespace

ProgramOutcome solve_as_integer_program(const SelectionNetwork& network, Incumbent& incumbent,
                                        const ProgramOptions& options, const Deadline& deadline) {
  const double most_wanted = std::min(incumbent.cost, options.cutoff);
  const double size = magnitude(network, most_wanted);
  const double scale = size > 0 ? target_magnitude / size : 1;
  // Presolve leaves no negative cost, so a pair dearer than that is in no choice that is wanted.
  SelectionProgram model(network, scale,
                         most_wanted < infinity ? size * (1 + 1e-9) : std::numeric_limits<double>::max());
  constexpr std::int64_t max_memory_entries = 200'000;  // beyond, rows wait until they are needed
  const bool all_rows = model.memory_entries() <= max_memory_entries;
  for (int t = 0; t < std::ssize(network.capacity) && all_rows; ++t) model.add_memory_row(t);

  const auto incident = incident_edges(network);
  LocalSearch local_search(network, incident);
  ProgramOutcome outcome;
  outcome.bound = -infinity;
  constexpr double near_s = 1;  // CBC measures its limit by itself
  while (!deadline.passed()) {
    IntegerProgramOptions limits{.absolute_gap = 0,
                                 .max_nodes = options.max_nodes,
                                 .time_limit_s = deadline.seconds_left(),
                                 .start = {},
                                 .cutoff = options.cutoff < incumbent.cost
                                               ? (options.cutoff - network.constant) * scale * (1 + 1e-9)
                                               : infinity,
                                 .stop = deadline.stop()};
    if (const double most = std::min(incumbent.cost, options.cutoff); most < infinity)
      limits.absolute_gap = options.gap * std::abs(most) * scale;
    if (incumbent.exists()) limits.start = model.columns_of(incumbent.choice);
    const auto result = solve_integer_program(model.program(), limits);
    using Status = IntegerProgramResult::Status;
    if (result.status == Status::failed ||
        (result.status == Status::stopped && deadline.seconds_left() < near_s))
      outcome.by_effort_alone = false;
    if (result.status == Status::failed) return outcome;
    if (result.status == Status::infeasible) {
      outcome.finished = outcome.infeasible = true;
      return outcome;
    }
    outcome.bound = std::max(outcome.bound, network.constant + result.bound / scale);
    if (result.solution.empty()) return outcome;

    const auto choice = model.choice_of(result.solution);
    const auto free = free_memory(network, choice);
    bool added = false;
    for (int t = 0; t < std::ssize(free); ++t) {
      if (free[t] < 0 && !model.has_row(t)) model.add_memory_row(t), added = true;
    }
    local_search.start_from(choice);
    if (std::isfinite(network_cost(network, choice)) && local_search.repair(deadline)) {
      incumbent.offer(local_search.choice(), network_cost(network, local_search.choice()));
    }
    if (added && result.status == Status::optimal) continue;
    outcome.finished = result.status == Status::optimal && incumbent.exists();
    return outcome;
  }
  return outcome;
}

}  // namespace alpa
