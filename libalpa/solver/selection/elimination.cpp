#include "libalpa/solver/selection/elimination.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "libalpa/base/infinity.h"

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
  // A neighbour may have become a hub later on.
  std::vector<char> is_hub(network_.nodes.size(), 0);
  for (int hub : hubs_) is_hub[hub] = 1;
  for (Step& step : steps_) {
    std::erase_if(step.scope, [&](int other) { return is_hub[other] != 0; });
    for (int other : step.scope) step.extent.push_back(network_.strategies(other));
  }
}

void Elimination::place_factors(const std::vector<std::vector<int>>& incident) {
  std::vector<int> step_of(network_.nodes.size(), -1);
  for (int s = 0; s < std::ssize(steps_); ++s) step_of[steps_[s].node] = s;
  for (int s = 0; s < std::ssize(steps_); ++s) {
    Step& step = steps_[s];
    for (int e : incident[step.node]) {
      const auto& edge = network_.edges[e];
      const int other = other_end(edge, step.node);
      if (step_of[other] < s) continue;  // outside the members, or taken care of by the other end
      const std::ptrdiff_t columns = network_.strategies(edge.to);
      Factor factor{.data = edge.cost.data(),
                    .step = -1,
                    .own_stride = edge.from == step.node ? columns : 1,
                    .stride = {}};
      factor.stride.assign(step.scope.size(), 0);
      factor.stride[position_of(other, step.scope)] = edge.from == step.node ? 1 : columns;
      step.factors.push_back(std::move(factor));
    }
    if (step.scope.empty()) continue;
    // The table of this step is a factor of the first of its scope to go.
    const int heir = step_of[*std::min_element(step.scope.begin(), step.scope.end(),
                                               [&](int a, int b) { return step_of[a] < step_of[b]; })];
    Factor factor{.data = nullptr, .step = s, .own_stride = 0, .stride = {}};
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
    steps_[heir].factors.push_back(std::move(factor));
  }
}

namespace {

// Walks a row-major table of these extents along its last dimension and calls row(entry of the table, entry
// of a factor that has these strides, stride along the row) for each.
template <class Row>
void walk_rows(const std::vector<int>& extent, const std::vector<std::ptrdiff_t>& stride,
               std::vector<double>& table, std::ptrdiff_t offset, Row row) {
  if (extent.empty()) return row(table.data(), 1, offset, 0);
  const std::size_t last = extent.size() - 1;
  std::vector<int> index(last, 0);
  for (std::size_t at = 0; at < table.size(); at += extent[last]) {
    row(table.data() + at, extent[last], offset, stride[last]);
    for (std::size_t d = last; d-- > 0;) {
      offset += stride[d];
      if (++index[d] < extent[d]) break;
      offset -= stride[d] * extent[d];
      index[d] = 0;
    }
  }
}

void add_factor(const double* factor, const std::vector<std::ptrdiff_t>& stride, std::ptrdiff_t offset,
                const std::vector<int>& extent, std::vector<double>& table) {
  walk_rows(extent, stride, table, offset,
            [&](double* out, int count, std::ptrdiff_t at, std::ptrdiff_t step) {
              const double* from = factor + at;
              if (step == 1) {
                for (int k = 0; k < count; ++k) out[k] += from[k];
              } else {
                for (int k = 0; k < count; ++k) out[k] += from[k * step];
              }
            });
}

// Lowers the factor's entries to the least of the table's entries that they stand for.
void lower_factor(double* factor, const std::vector<std::ptrdiff_t>& stride, std::ptrdiff_t offset,
                  const std::vector<int>& extent, std::vector<double>& table) {
  walk_rows(extent, stride, table, offset,
            [&](const double* in, int count, std::ptrdiff_t at, std::ptrdiff_t step) {
              double* to = factor + at;
              for (int k = 0; k < count; ++k) to[k * step] = std::min(to[k * step], in[k]);
            });
}

std::size_t product(const std::vector<int>& extent) {
  std::size_t cells = 1;
  for (int count : extent) cells *= static_cast<std::size_t>(count);
  return cells;
}

}  // namespace

// All that depends on the step's node, when that takes `strategy`: over the scope.
void Elimination::fill_scratch(const Step& step, int strategy, double own_cost) {
  scratch_.assign(product(step.extent), own_cost);
  for (const Factor& factor : step.factors) {
    const double* data = factor.data ? factor.data : steps_[factor.step].table.data();
    add_factor(data, factor.stride, strategy * factor.own_stride, step.extent, scratch_);
  }
}

void Elimination::fill(Step& step, const std::vector<double>& own_cost) {
  const std::size_t cells = product(step.extent);
  step.table.assign(cells, infinity);
  step.best.assign(cells, 0);
  for (int a = 0; a < std::ssize(own_cost); ++a) {
    fill_scratch(step, a, own_cost[a]);
    for (std::size_t k = 0; k < cells; ++k) {
      if (scratch_[k] < step.table[k]) step.table[k] = scratch_[k], step.best[k] = a;
    }
  }
}

double Elimination::minimise(const std::vector<std::vector<double>>& node_cost, std::vector<int>& choice) {
  double minimum = 0;
  for (Step& step : steps_) {
    fill(step, node_cost[step.node]);
    if (step.scope.empty()) minimum += step.table[0];
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    std::size_t cell = 0;
    for (std::size_t k = 0; k < step->scope.size(); ++k)
      cell = cell * step->extent[k] + choice[step->scope[k]];
    choice[step->node] = step->best[cell];
  }
  return minimum;
}

std::vector<std::vector<double>> Elimination::min_marginals(
    const std::vector<std::vector<double>>& node_cost) {
  double minimum = 0;
  for (const Step& step : steps_) {
    if (step.scope.empty()) minimum += step.table[0];
  }
  std::vector<std::vector<double>> marginals(network_.nodes.size());
  std::vector<std::vector<double>> outside(
      steps_.size());  // over each step's scope: least cost of all not in its table
  for (std::ptrdiff_t s = std::ssize(steps_) - 1; s >= 0; --s) {
    const Step& step = steps_[s];
    if (step.scope.empty()) outside[s] = {minimum - step.table[0]};
    for (const Factor& factor : step.factors) {
      if (!factor.data) outside[factor.step].assign(steps_[factor.step].table.size(), infinity);
    }
    for (int a = 0; a < network_.strategies(step.node); ++a) {
      fill_scratch(step, a, node_cost[step.node][a]);
      for (std::size_t k = 0; k < scratch_.size(); ++k) scratch_[k] += outside[s][k];
      marginals[step.node].push_back(*std::min_element(scratch_.begin(), scratch_.end()));
      for (const Factor& factor : step.factors) {
        if (factor.data) continue;
        lower_factor(outside[factor.step].data(), factor.stride, a * factor.own_stride, step.extent,
                     scratch_);
      }
    }
    for (const Factor& factor : step.factors) {
      if (factor.data) continue;
      const auto& inside = steps_[factor.step].table;
      for (std::size_t k = 0; k < inside.size(); ++k) {
        if (!std::isinf(inside[k])) outside[factor.step][k] -= inside[k];
      }
    }
    outside[s] = {};
  }
  return marginals;
}

}  // namespace alpa
