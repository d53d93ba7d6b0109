#include "libalpa/planner/search/layer_clustering.h"

#include <algorithm>
#include <cassert>
#include <functional>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

/// The cheapest cut of items 0 .. end - 1 into clusters, for costs that add up or of which the largest
/// counts.
class Cuts {
 public:
  using Cost = std::function<double(int first, int end)>;  ///< infinite: no cluster
  using Join = double (*)(double, double);

  Cuts(int items, int count, const Cost& cost, Join join) {
    const std::size_t rows = static_cast<std::size_t>(count) + 1,
                      columns = static_cast<std::size_t>(items) + 1;
    best_.assign(rows, std::vector<double>(columns, infinity));
    from_.assign(rows, std::vector<int>(columns, 0));
    best_[0][0] = 0;
    for (std::size_t q = 1; q < rows; ++q)
      for (std::size_t end = q; end < columns; ++end)
        for (std::size_t first = q - 1; first < end; ++first) {
          if (best_[q - 1][first] == infinity) continue;
          const double joined =
              join(best_[q - 1][first], cost(static_cast<int>(first), static_cast<int>(end)));
          if (joined >= best_[q][end]) continue;
          best_[q][end] = joined;
          from_[q][end] = static_cast<int>(first);
        }
  }

  double cost() const { return best_.back().back(); }

  std::vector<int> places() const {
    std::vector<int> places{static_cast<int>(best_.back().size()) - 1};
    for (std::size_t q = best_.size() - 1; q > 0; --q) places.push_back(from_[q][places.back()]);
    std::reverse(places.begin(), places.end());
    return places;
  }

 private:
  std::vector<std::vector<double>> best_;  ///< [clusters][end]
  std::vector<std::vector<int>> from_;
};

double larger(double a, double b) { return std::max(a, b); }
double sum(double a, double b) { return a + b; }

}  // namespace

Chain layer_chain(const Graph& graph) {
  const std::size_t layers = graph.layers.size();
  Chain chain{std::vector<double>(layers, 0.0),
              std::vector<std::vector<double>>(layers, std::vector<double>(layers, 0.0))};
  std::vector<std::vector<int>> readers(graph.values.size());  // layers, ascending
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::forward) continue;
    const std::vector<TensorType> types = operand_types(graph, node);
    chain.work[node.layer] += flops_of(*node.op, {types, node.attributes});
    for (const ValueIndex operand : node.operands) readers[operand].push_back(node.layer);
  }
  for (const ValueIndex v : graph.values.indices()) {
    const Value& value = graph.values[v];
    if (value.producer < 0 || node_of(graph, value.producer).phase != Phase::forward) continue;
    const int maker = node_of(graph, value.producer).layer;
    std::sort(readers[v].begin(), readers[v].end());
    for (std::size_t first = static_cast<std::size_t>(maker) + 1; first < layers; ++first) {
      const auto next = std::lower_bound(readers[v].begin(), readers[v].end(), static_cast<int>(first));
      if (next == readers[v].end()) break;
      for (std::size_t last = static_cast<std::size_t>(*next); last < layers; ++last)
        chain.incoming_bytes[first][last] += static_cast<double>(byte_count(value.type));
    }
  }
  return chain;
}

std::vector<int> cluster_chain(const Chain& chain, int count, double imbalance) {
  const int items = static_cast<int>(chain.work.size());
  assert(count >= 1 && count <= items && imbalance > 0);
  std::vector<double> before{0};
  for (const double work : chain.work) before.push_back(before.back() + work);
  const auto work = [&](int first, int end) { return before[end] - before[first]; };
  const auto bytes = [&](int first, int end) {
    return chain.incoming_bytes[first][static_cast<std::size_t>(end) - 1];
  };
  for (;; imbalance *= 2) {
    const double most = (1 + imbalance) * before.back() / count;
    const Cuts lightest(
        items, count,
        [&](int first, int end) { return work(first, end) > most ? infinity : bytes(first, end); }, larger);
    if (lightest.cost() == infinity) continue;
    const auto square = [&](int first, int end) {
      const double w = work(first, end);
      return w > most || bytes(first, end) > lightest.cost() ? infinity : w * w;
    };
    return Cuts(items, count, square, sum).places();
  }
}

}  // namespace alpa
