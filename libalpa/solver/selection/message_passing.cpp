#include "libalpa/solver/selection/message_passing.h"

#include <algorithm>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/base/instruction_set.h"

namespace alpa {
namespace {

constexpr int kVector = 4;  // doubles

int padded(int strategies) { return (strategies + kVector - 1) / kVector * kVector; }

// least[b] = min over a of table[a][b] - moved[a], for kColumns columns at once: so they stay in registers.
template <int kColumns>
void minima_of_columns(const double* __restrict table, std::ptrdiff_t stride, const double* __restrict moved,
                       int rows, double* __restrict least) {
  double low[kColumns];
  std::fill(low, low + kColumns, infinity);
  for (int a = 0; a < rows; ++a, table += stride) {
    const double offset = moved[a];
    for (int b = 0; b < kColumns; ++b) low[b] = std::min(low[b], table[b] - offset);
  }
  std::copy(low, low + kColumns, least);
}

void column_minima(const double* table, const double* moved, int rows, int columns, double* least) {
  int b = 0;
  for (; b + 4 * kVector <= columns; b += 4 * kVector)
    minima_of_columns<4 * kVector>(table + b, columns, moved, rows, least + b);
  for (; b + 2 * kVector <= columns; b += 2 * kVector)
    minima_of_columns<2 * kVector>(table + b, columns, moved, rows, least + b);
  if (b < columns) minima_of_columns<kVector>(table + b, columns, moved, rows, least + b);
}

// least[a] = min over b of table[a][b] - moved[b]
void row_minima(const double* __restrict table, const double* __restrict moved, int rows, int columns,
                double* __restrict least) {
  for (int a = 0; a < rows; ++a, table += columns) {
    double low[kVector];
    std::fill(low, low + kVector, infinity);
    for (int b = 0; b < columns; b += kVector)
      for (int k = 0; k < kVector; ++k) low[k] = std::min(low[k], table[b + k] - moved[b + k]);
    least[a] = std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
  }
}

}  // namespace

MessagePassing::MessagePassing(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident)
    : network_(network), choice_(network.nodes.size(), 0), margin_(network.nodes.size(), 0) {
  lay_out_sides(incident);
  fill_tables();
}

void MessagePassing::lay_out_sides(const std::vector<std::vector<int>>& incident) {
  const int nodes = static_cast<int>(network_.nodes.size());
  std::vector<std::array<std::size_t, 2>> moved_at(network_.edges.size());  // of `from`, of `to`
  std::vector<std::size_t> table_at(network_.edges.size());
  std::size_t moved = 0, belief = 0, table = 0;
  for (std::size_t e = 0; e < moved_at.size(); ++e) {
    const auto& edge = network_.edges[e];
    for (const int end : {0, 1}) {
      moved_at[e][end] = moved;
      moved += padded(network_.strategies(end == 0 ? edge.from : edge.to));
    }
    const bool is_forward = edge.from < edge.to;
    table_at[e] = table;
    table += static_cast<std::size_t>(network_.strategies(is_forward ? edge.from : edge.to)) *
             padded(network_.strategies(is_forward ? edge.to : edge.from));
  }
  moved_.assign(moved, 0);
  for (auto& shares : share_) shares.resize(nodes);
  for (int i = 0; i < nodes; ++i) {
    widest_ = std::max<std::size_t>(widest_, padded(network_.strategies(i)));
    belief_begin_.push_back(belief);
    belief += network_.strategies(i);
    side_begin_.push_back(static_cast<int>(sides_.size()));
    int later = 0;
    for (const int e : incident[i]) {
      const bool is_to = network_.edges[e].to == i;
      const int other = other_end(network_.edges[e], i);
      const bool is_earlier = i < other;
      sides_.push_back({e, other, is_to, network_.strategies(is_earlier ? i : other),
                        padded(network_.strategies(is_earlier ? other : i)), table_at[e], moved_at[e][is_to],
                        moved_at[e][!is_to]});
      later += is_earlier;
    }
    const int earlier = static_cast<int>(incident[i].size()) - later;
    for (const bool forward : {false, true}) {
      const int ahead = forward ? later : earlier;
      if (ahead == 0) continue;
      const double of_each = 1.0 / std::max(later, earlier);
      share_[forward][i] = {of_each, 1 - of_each * ahead};
    }
  }
  side_begin_.push_back(static_cast<int>(sides_.size()));
  belief_.resize(belief);
}

void MessagePassing::fill_tables() {
  std::vector<double> tables;
  for (const auto& edge : network_.edges) {
    const int earlier = std::min(edge.from, edge.to), later = std::max(edge.from, edge.to);
    const int rows = network_.strategies(earlier), columns = network_.strategies(later);
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < padded(columns); ++b)
        tables.push_back(b >= columns       ? infinity
                         : edge.to == later ? edge.cost[static_cast<std::size_t>(a) * columns + b]
                                            : edge.cost[static_cast<std::size_t>(b) * rows + a]);
  }
  tables_ = std::make_shared<const std::vector<double>>(std::move(tables));
}

void MessagePassing::find_minima(const Side& side, int node, double* least) const {
  const double *table = tables_->data() + side.table, *moved = moved_.data() + side.moved_to_other;
  if (side.other < node)
    column_minima(table, moved, side.rows, side.columns, least);
  else
    row_minima(table, moved, side.rows, side.columns, least);
}

void MessagePassing::collect(const Side& side, int node, double* __restrict least,
                             double* __restrict belief) {
  double* __restrict moved = moved_.data() + side.moved;
  find_minima(side, node, least);
  const int strategies = network_.strategies(node);
  for (int a = 0; a < strategies; ++a) {
    belief[a] += least[a] - moved[a];
    moved[a] = least[a];
  }
}

void MessagePassing::visit(int node, bool forward, double* __restrict scratch, double* __restrict given) {
  double* __restrict belief = belief_.data() + belief_begin_[node];
  const auto sides = sides_of(node);
  for (const Side& side : sides)
    if ((side.other < node) == forward) collect(side, node, scratch, belief);
  const Share& share = share_[forward][node];
  if (share.of_each == 0) return;
  const int strategies = network_.strategies(node);
  // In an array, lest a product and a difference become one operation on processors that have it.
  for (int a = 0; a < strategies; ++a) given[a] = share.of_each * belief[a];
  for (const Side& side : sides) {
    if ((side.other < node) == forward) continue;
    double* __restrict moved = moved_.data() + side.moved;
    for (int a = 0; a < strategies; ++a) moved[a] -= given[a];
  }
  for (int a = 0; a < strategies; ++a) belief[a] *= share.kept;
}

void MessagePassing::pass(bool forward) {
  std::vector<double> scratch(widest_), given(widest_);
  const int count = static_cast<int>(choice_.size());
  run_vectorized(best_instruction_set(), 0, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k)
      visit(static_cast<int>(forward ? k : count - 1 - k), forward, scratch.data(), given.data());
  });
}

void MessagePassing::start_beliefs(const std::vector<std::vector<double>>& node_cost) {
  for (int i = 0; i < std::ssize(choice_); ++i) {
    const std::span<double> belief = belief_of(i);
    std::ranges::copy(node_cost[i], belief.begin());
    for (const Side& side : sides_of(i)) {
      const double* __restrict moved = moved_.data() + side.moved;
      for (std::size_t a = 0; a < belief.size(); ++a) belief[a] += moved[a];
    }
  }
}

void MessagePassing::decode(const std::vector<std::vector<double>>& node_cost) {
  std::vector<double> least;
  for (int i = 0; i < std::ssize(choice_); ++i) {
    least = node_cost[i];
    for (const Side& side : sides_of(i)) {
      const double* added = side.other < i ? tables_->data() + side.table +
                                                 static_cast<std::size_t>(choice_[side.other]) * side.columns
                                           : moved_.data() + side.moved;
      for (std::size_t a = 0; a < least.size(); ++a) least[a] += added[a];
    }
    const auto best = std::ranges::min_element(least);
    choice_[i] = static_cast<int>(best - least.begin());
    const double cost = std::exchange(*best, infinity);
    margin_[i] = *std::ranges::min_element(least) - cost;
  }
}

double MessagePassing::sweep(const std::vector<std::vector<double>>& node_cost) {
  start_beliefs(node_cost);
  pass(false);
  decode(node_cost);
  pass(true);
  double bound = 0;  // all edges were collected at their later end, so their minima are 0
  for (int i = 0; i < std::ssize(choice_); ++i) bound += std::ranges::min(belief_of(i));
  return bound;
}

std::vector<DualSolution::Moved> MessagePassing::moved() const {
  std::vector<DualSolution::Moved> moved(network_.edges.size());
  for (int i = 0; i < std::ssize(choice_); ++i)
    for (const Side& side : sides_of(i)) {
      const double* begin = moved_.data() + side.moved;
      (side.is_to ? moved[side.edge].to : moved[side.edge].from)
          .assign(begin, begin + network_.strategies(i));
    }
  return moved;
}

std::vector<std::vector<double>> MessagePassing::reduced_costs() const {
  std::vector<std::vector<double>> result;
  for (int i = 0; i < std::ssize(choice_); ++i) {
    const double* belief = belief_.data() + belief_begin_[i];
    auto& costs = result.emplace_back(belief, belief + network_.strategies(i));
    const double minimum = *std::ranges::min_element(costs);
    for (double& cost : costs) cost -= minimum;
  }
  std::vector<double> least(widest_);
  // In the order of edges, as sums depend on it.
  for (int i = 0; i < std::ssize(choice_); ++i)
    for (const Side& side : sides_of(i)) {
      if (side.other < i) continue;  // seen from the earlier end
      find_minima(side, i, least.data());
      const double* moved = moved_.data() + side.moved;
      for (std::size_t a = 0; a < result[i].size(); ++a) result[i][a] += std::max(0.0, least[a] - moved[a]);
    }
  return result;
}

}  // namespace alpa
