#include "libalpa/solver/elimination.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

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
      std::set_union(adjacent_[other].begin(), adjacent_[other].end(), adjacent_[k].begin(), adjacent_[k].end(),
                     std::back_inserter(joined));
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
      Factor factor{.data = edge.cost.data(), .step = -1, .own_stride = edge.from == step.node ? columns : 1, .stride = {}};
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

// Adds a factor over a scope to a row-major table of these extents.
void add_factor(const double* data, const std::vector<std::ptrdiff_t>& stride, const std::vector<int>& extent,
                std::vector<double>& table) {
  const std::size_t last = extent.size() - 1;
  std::vector<int> index(last, 0);
  const std::ptrdiff_t inner = stride[last];
  for (auto out = table.begin(); out != table.end(); out += extent[last]) {
    if (inner == 0) {
      for (int k = 0; k < extent[last]; ++k) out[k] += *data;
    } else if (inner == 1) {
      for (int k = 0; k < extent[last]; ++k) out[k] += data[k];
    } else {
      for (int k = 0; k < extent[last]; ++k) out[k] += data[k * inner];
    }
    for (std::size_t d = last; d-- > 0;) {
      data += stride[d];
      if (++index[d] < extent[d]) break;
      data -= stride[d] * extent[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void Elimination::fill(Step& step, const std::vector<double>& own_cost) {
  std::size_t cells = 1;
  for (int extent : step.extent) cells *= static_cast<std::size_t>(extent);
  step.table.assign(cells, std::numeric_limits<double>::infinity());
  step.best.assign(cells, 0);
  for (int a = 0; a < std::ssize(own_cost); ++a) {
    scratch_.assign(cells, own_cost[a]);
    for (const Factor& factor : step.factors) {
      const double* data = (factor.data ? factor.data : steps_[factor.step].table.data()) + a * factor.own_stride;
      if (step.scope.empty()) {
        scratch_[0] += *data;
      } else {
        add_factor(data, factor.stride, step.extent, scratch_);
      }
    }
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
    for (std::size_t k = 0; k < step->scope.size(); ++k) cell = cell * step->extent[k] + choice[step->scope[k]];
    choice[step->node] = step->best[cell];
  }
  return minimum;
}

}  // namespace alpa
