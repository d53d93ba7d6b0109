#include "libalpa/solver/selection/elimination.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "libalpa/base/infinity.h"
#include "libalpa/base/instruction_set.h"
#include "libalpa/solver/selection/table_rows.h"

namespace alpa {
namespace {

// The graph of what is left, as sorted neighbour lists over the positions of a region.
class ShrinkingGraph {
 public:
  ShrinkingGraph(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident,
                 const std::vector<int>& region)
      : adjacent_(region.size()), extent_(region.size()), size_(region.size()) {
    std::vector<int> position(network.nodes.size(), -1);
    for (int k = 0; k < std::ssize(region); ++k) position[region[k]] = k;
    for (int k = 0; k < std::ssize(region); ++k) {
      extent_[k] = network.strategies(region[k]);
      for (int e : incident[region[k]]) {
        const int other = position[other_end(network.edges[e], region[k])];
        if (other >= 0) adjacent_[k].push_back(other);
      }
      std::sort(adjacent_[k].begin(), adjacent_[k].end());
      adjacent_[k].erase(std::unique(adjacent_[k].begin(), adjacent_[k].end()), adjacent_[k].end());
    }
    for (int k = 0; k < std::ssize(region); ++k) requeue(k);
  }

  bool empty() const { return by_size_.empty(); }
  int cheapest() const { return by_size_.begin()->second; }
  int dearest() const { return std::prev(by_size_.end())->second; }
  double table_cells(int k) const { return size_[k]; }
  double work(int k) const { return size_[k] * extent_[k]; }
  const std::vector<int>& adjacent(int k) const { return adjacent_[k]; }

  void remove(int k) {
    for (int other : adjacent_[k]) {
      auto& list = adjacent_[other];
      list.erase(std::lower_bound(list.begin(), list.end(), k));
    }
    by_size_.erase({size_[k], k});
    for (int other : adjacent_[k]) requeue(other);
  }

  void eliminate(int k) {
    for (int other : adjacent_[k]) {
      std::vector<int> joined;
      std::set_union(adjacent_[other].begin(), adjacent_[other].end(), adjacent_[k].begin(),
                     adjacent_[k].end(), std::back_inserter(joined));
      joined.erase(std::lower_bound(joined.begin(), joined.end(), other));
      adjacent_[other] = std::move(joined);
    }
    remove(k);
  }

 private:
  void requeue(int k) {
    by_size_.erase({size_[k], k});
    size_[k] = 1;
    for (int other : adjacent_[k]) size_[k] *= extent_[other];
    by_size_.emplace(size_[k], k);
  }

  std::vector<std::vector<int>> adjacent_;
  std::vector<int> extent_;
  std::vector<double> size_;  // cells of the table that eliminating the node would make
  std::set<std::pair<double, int>> by_size_;
};

std::ptrdiff_t position_of(int value, const std::vector<int>& values) {
  return std::find(values.begin(), values.end(), value) - values.begin();
}

}  // namespace

Elimination::Elimination(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident,
                         const std::vector<int>& region, Limits limits)
    : network_(network) {
  find_order(incident, region, limits);
  place_factors(incident);
}

void Elimination::find_order(const std::vector<std::vector<int>>& incident, const std::vector<int>& region,
                             Limits limits) {
  ShrinkingGraph graph(network_, incident, region);
  while (!graph.empty()) {
    const int k = graph.cheapest();
    if (work_ + graph.work(k) > limits.total_work || graph.table_cells(k) > limits.table_cells) {
      const int hub = graph.dearest();
      hubs_.push_back(region[hub]);
      if (limits.all_or_none) break;
      graph.remove(hub);
      continue;
    }
    work_ += graph.work(k);
    Step& step = steps_.emplace_back();
    step.node = region[k];
    for (int other : graph.adjacent(k)) step.scope.push_back(region[other]);
    members_.push_back(region[k]);
    graph.eliminate(k);
  }
  if (limits.all_or_none && !hubs_.empty()) members_.clear(), steps_.clear();
  step_of_.assign(network_.nodes.size(), -1);
  for (int s = 0; s < std::ssize(steps_); ++s) step_of_[steps_[s].node] = s;
  for (Step& step : steps_) {
    std::erase_if(step.scope, [&](int other) { return step_of_[other] < 0; });  // it became a hub later on
    std::ranges::sort(step.scope, {}, [&](int other) { return step_of_[other]; });
    for (int other : step.scope) step.extent.push_back(network_.strategies(other));
    choose_rows(step);
  }
}

/// Rows are long enough for vectors where that takes more than the last of the scope.
void Elimination::choose_rows(Step& step) {
  constexpr std::ptrdiff_t kLongEnough = 16;
  step.outer = step.extent.size();
  while (step.outer > 0 && step.row < kLongEnough) step.row *= step.extent[--step.outer];
}

/// An edge's costs as a table over the node, and its other end or, where that is part of the rows, all that a
/// row has.
Elimination::Factor Elimination::factor_of(const SelectionNetwork::Edge& edge, const Step& step) {
  const bool is_from = edge.from == step.node;
  const std::ptrdiff_t own = network_.strategies(step.node), columns = network_.strategies(edge.to);
  const auto cost = [&](std::ptrdiff_t mine, std::ptrdiff_t other) {
    return edge.cost[is_from ? mine * columns + other : other * columns + mine];
  };
  const auto place = static_cast<std::size_t>(position_of(other_end(edge, step.node), step.scope));
  const std::ptrdiff_t extent = step.extent[place];
  Factor factor;
  factor.own_stride = place < step.outer ? extent : step.row;
  factor.stride = step.stride_in_row();
  std::vector<double>& table = tables_.emplace_back();
  table.reserve(static_cast<std::size_t>(own * factor.own_stride));
  if (place < step.outer) {
    std::ranges::fill(factor.stride, 0);
    factor.stride[place] = 1;
    for (std::ptrdiff_t mine = 0; mine < own; ++mine)
      for (std::ptrdiff_t other = 0; other < extent; ++other) table.push_back(cost(mine, other));
  } else {
    const std::ptrdiff_t equal = factor.stride[place];  // entries of a row, one after another
    for (std::ptrdiff_t mine = 0; mine < own; ++mine)
      for (std::ptrdiff_t k = 0; k < step.row; k += equal * extent)
        for (std::ptrdiff_t other = 0; other < extent; ++other)
          table.insert(table.end(), static_cast<std::size_t>(equal), cost(mine, other));
  }
  factor.data = table.data();
  return factor;
}

/// Where a row's entries are in the table of a factor that has part of the row's scope.
std::vector<int> Elimination::places_in_row(const Step& step, const Factor& factor) {
  const std::vector<std::ptrdiff_t> in_row = step.stride_in_row();
  std::vector<int> places;
  for (std::ptrdiff_t k = 0; k < step.row; ++k) {
    std::ptrdiff_t place = 0;
    for (std::size_t d = step.outer; d < step.extent.size(); ++d)
      place += k / in_row[d] % step.extent[d] * factor.stride[d];
    places.push_back(static_cast<int>(place));
  }
  return places;
}

/// [scope] How far entries are apart in a row; 0: it is not part of rows.
std::vector<std::ptrdiff_t> Elimination::Step::stride_in_row() const {
  std::vector<std::ptrdiff_t> stride(extent.size(), 0);
  std::ptrdiff_t next = 1;
  for (std::size_t d = extent.size(); d-- > outer; next *= extent[d]) stride[d] = next;
  return stride;
}

void Elimination::place_factors(const std::vector<std::vector<int>>& incident) {
  for (int s = 0; s < std::ssize(steps_); ++s) {
    Step& step = steps_[s];
    for (int e : incident[step.node]) {
      const auto& edge = network_.edges[e];
      const int other = other_end(edge, step.node);
      // Others are outside the members, or taken care of by the other end.
      if (step_of_[other] > s) step.factors.push_back(factor_of(edge, step));
    }
    if (step.scope.empty()) continue;
    const int heir = step_of_[step.scope.front()];  // the first of its scope to go takes its table
    Factor factor;
    factor.step = s;
    factor.stride.assign(steps_[heir].scope.size(), 0);
    std::ptrdiff_t stride = 1;
    for (std::ptrdiff_t k = std::ssize(step.scope) - 1; k >= 0; --k) {
      if (step.scope[k] == steps_[heir].node) {
        factor.own_stride = stride;
      } else {
        factor.stride[position_of(step.scope[k], steps_[heir].scope)] = stride;
      }
      stride *= step.extent[k];
    }
    factor.places = places_in_row(steps_[heir], factor);
    steps_[heir].factors.push_back(std::move(factor));
  }
}

namespace {

std::size_t product(const std::vector<int>& extent) {
  std::size_t cells = 1;
  for (int count : extent) cells *= static_cast<std::size_t>(count);
  return cells;
}

void lower(double* to, const double* by, std::ptrdiff_t count) {
  for (std::ptrdiff_t k = 0; k < count; ++k) to[k] = std::min(to[k], by[k]);
}

void add_up(double* sums, double cost, const std::vector<const double*>& terms, std::ptrdiff_t count) {
  for (std::ptrdiff_t k = 0; k < count; ++k) sums[k] = cost;
  for (const double* term : terms)
    for (std::ptrdiff_t k = 0; k < count; ++k) sums[k] += term[k];
}

/// By the sums of cost and terms. In one pass for as many terms as nearly all nodes have.
void lower_by_sums(double* to, double cost, const std::vector<const double*>& terms, std::ptrdiff_t count,
                   double* sums) {
  switch (terms.size()) {
    case 1: {
      const double* x = terms[0];
      for (std::ptrdiff_t k = 0; k < count; ++k) to[k] = std::min(to[k], cost + x[k]);
      return;
    }
    case 2: {
      const double *x = terms[0], *y = terms[1];
      for (std::ptrdiff_t k = 0; k < count; ++k) to[k] = std::min(to[k], cost + x[k] + y[k]);
      return;
    }
    case 3: {
      const double *x = terms[0], *y = terms[1], *z = terms[2];
      for (std::ptrdiff_t k = 0; k < count; ++k) to[k] = std::min(to[k], cost + x[k] + y[k] + z[k]);
      return;
    }
    default:
      add_up(sums, cost, terms, count);
      lower(to, sums, count);
  }
}

double least(const double* of, std::ptrdiff_t count) {
  double least = infinity;
  for (std::ptrdiff_t k = 0; k < count; ++k) least = std::min(least, of[k]);
  return least;
}

}  // namespace

const double* Elimination::table_of(const Factor& factor) const {
  return factor.data ? factor.data : steps_[factor.step].table.data();
}

void Elimination::fill(Step& step, const std::vector<double>& own_cost) {
  step.table.assign(product(step.extent), infinity);
  TableRows rows(step, own_cost, [this](const Factor& factor) { return table_of(factor); });
  std::vector<double> sums(static_cast<std::size_t>(rows.count()));
  run_vectorized(best_instruction_set(), 0, std::ssize(step.table), [&](std::int64_t at, std::int64_t end) {
    for (; at < end; at += rows.count(), rows.next())
      for (const auto& [strategy, cost] : rows.open())
        lower_by_sums(step.table.data() + at, cost, rows.along(strategy), rows.count(), sums.data());
  });
}

/// Where its scope is as chosen.
int Elimination::best_strategy(const Step& step, const std::vector<double>& own_cost,
                               const std::vector<int>& choice) const {
  std::vector<double> sums = own_cost;
  for (const Factor& factor : step.factors) {
    const double* at = table_of(factor);
    for (std::size_t k = 0; k < step.scope.size(); ++k) at += choice[step.scope[k]] * factor.stride[k];
    for (std::size_t a = 0; a < sums.size(); ++a)
      sums[a] += at[static_cast<std::ptrdiff_t>(a) * factor.own_stride];
  }
  return static_cast<int>(std::ranges::min_element(sums) - sums.begin());
}

double Elimination::minimise(const std::vector<std::vector<double>>& node_cost, std::vector<int>& choice) {
  double minimum = 0;
  for (Step& step : steps_) {
    fill(step, node_cost[step.node]);
    if (step.scope.empty()) minimum += step.table[0];
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
    choice[step->node] = best_strategy(*step, node_cost[step->node], choice);
  return minimum;
}

std::vector<std::vector<double>> Elimination::min_marginals(
    const std::vector<std::vector<double>>& node_cost) {
  double minimum = 0;
  for (const Step& step : steps_)
    if (step.scope.empty()) minimum += step.table[0];
  std::vector<std::vector<double>> marginals(network_.nodes.size());
  // [step] Over its scope: the least cost of all that is not in its table.
  std::vector<std::vector<double>> outside(steps_.size());
  for (std::ptrdiff_t s = std::ssize(steps_) - 1; s >= 0; --s) {
    const Step& step = steps_[s];
    if (step.scope.empty()) outside[s] = {minimum - step.table[0]};
    std::vector<double*> inside(step.factors.size(), nullptr);  // [factor] null: an edge
    for (std::size_t f = 0; f < step.factors.size(); ++f) {
      if (step.factors[f].data) continue;
      std::vector<double>& of_factor = outside[step.factors[f].step];
      of_factor.assign(steps_[step.factors[f].step].table.size(), infinity);
      inside[f] = of_factor.data();
    }
    const std::vector<double>& own_cost = node_cost[step.node];
    std::vector<double>& own = marginals[step.node];
    own.assign(own_cost.size(), infinity);
    TableRows rows(step, own_cost, [this](const Factor& factor) { return table_of(factor); });
    std::vector<double> row(static_cast<std::size_t>(rows.count()));
    const auto place = [&](const auto& term, int strategy) -> double* {
      if (!inside[term.factor]) return nullptr;
      const Factor& factor = step.factors[term.factor];
      return inside[term.factor] + (term.at - table_of(factor)) + strategy * factor.own_stride;
    };
    run_vectorized(best_instruction_set(), 0, std::ssize(step.table), [&](std::int64_t at, std::int64_t end) {
      for (; at < end; at += rows.count(), rows.next())
        for (const auto& [a, cost] : rows.open()) {
          double* sums = row.data();
          add_up(sums, cost, rows.along(a), rows.count());
          const double* others = outside[s].data() + at;
          for (std::ptrdiff_t k = 0; k < rows.count(); ++k) sums[k] += others[k];
          const double least_sum = least(sums, rows.count());
          own[a] = std::min(own[a], least_sum);
          for (const auto& term : rows.numbers())
            if (double* to = place(term, a)) *to = std::min(*to, least_sum);
          for (const auto& term : rows.rows())
            if (double* to = place(term, a)) lower(to, sums, rows.count());
          for (const auto& term : rows.parts())
            if (double* to = place(term, a))
              for (std::ptrdiff_t k = 0; k < rows.count(); ++k)
                to[term.places[k]] = std::min(to[term.places[k]], sums[k]);
        }
    });
    for (const Factor& factor : step.factors) {
      if (factor.data) continue;
      const auto& table = steps_[factor.step].table;
      for (std::size_t k = 0; k < table.size(); ++k)
        if (!std::isinf(table[k])) outside[factor.step][k] -= table[k];
    }
    outside[s] = {};
  }
  return marginals;
}

}  // namespace alpa
