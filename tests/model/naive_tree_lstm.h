#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "libalpa/dataset/vertex_graph.h"
#include "tests/support/tensor_values.h"

// A Tree-LSTM as it says of one vertex, and its gradients by hand, in f64.

namespace alpa {

/// [parameter] Its elements.
using Parameters = std::map<std::string, Values>;

inline constexpr std::size_t kWide = 3, kHidden = 4;  ///< numbers of an input and of a state

inline Values row_of(const Values& table, std::int32_t row, std::size_t width) {
  const auto begin = table.begin() + static_cast<std::ptrdiff_t>(width) * row;
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

/// to += row times weight [row's numbers, to's].
inline void add_product(const Values& row, const Values& weight, Values& to) {
  for (std::size_t i = 0; i < row.size(); ++i)
    for (std::size_t j = 0; j < to.size(); ++j) to[j] += row[i] * weight[i * to.size() + j];
}

/// What add_product() takes from the gradient of `to` to those of the row and of the weight.
inline void add_gradients(const Values& row, const Values& weight, const Values& of_to, Values& of_row,
                          Values& of_weight) {
  for (std::size_t i = 0; i < row.size(); ++i)
    for (std::size_t j = 0; j < of_to.size(); ++j) {
      of_row[i] += of_to[j] * weight[i * of_to.size() + j];
      of_weight[i * of_to.size() + j] += of_to[j] * row[i];
    }
}

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// A vertex of Tai et al.'s child-sum Tree-LSTM; gates: input, output, update.
struct NaiveVertex {
  Values x, sum = Values(kHidden), gates = Values(3 * kHidden), cell = Values(kHidden),
            shown = Values(kHidden);
  std::vector<Values> forgets;                                   ///< [child]
  Values of_shown = Values(kHidden), of_cell = Values(kHidden);  ///< gradients
};

class NaiveTreeLstm {
 public:
  NaiveTreeLstm(const Parameters& parameters, const VertexGraph& graph)
      : p_(parameters), graph_(graph), vertices_(static_cast<std::size_t>(graph.vertices())) {
    for (std::int32_t v = 0; v < graph.vertices(); ++v) forward(v);
  }

  double loss() const {
    double sum = 0;
    for (std::int32_t v = 0; v < graph_.vertices(); ++v)
      sum += std::inner_product(at(v).shown.begin(), at(v).shown.end(), weights(v).begin(), 0.0);
    return sum;
  }

  void add_gradients_to(Parameters& gradients) {
    for (std::int32_t v = graph_.vertices() - 1; v >= 0; --v) backward(v, gradients);
  }

 private:
  NaiveVertex& at(std::int32_t v) { return vertices_[static_cast<std::size_t>(v)]; }
  const NaiveVertex& at(std::int32_t v) const { return vertices_[static_cast<std::size_t>(v)]; }
  std::int32_t token(std::int32_t v) const { return graph_.tokens[static_cast<std::size_t>(v)]; }
  Values weights(std::int32_t v) const { return row_of(p_.at("weighed.numbers"), token(v), kHidden); }

  void forward(std::int32_t v) {
    NaiveVertex& it = at(v);
    it.x = row_of(p_.at("vertex_embedding.table"), token(v), kWide);
    for (const std::int32_t child : graph_.children_of(v))
      for (std::size_t i = 0; i < kHidden; ++i) it.sum[i] += at(child).shown[i];
    Values of_x = p_.at("tree_lstm.bias");
    add_product(it.x, p_.at("tree_lstm.input"), of_x);
    std::copy_n(of_x.begin(), 3 * kHidden, it.gates.begin());
    add_product(it.sum, p_.at("tree_lstm.recurrent"), it.gates);
    for (std::size_t g = 0; g < it.gates.size(); ++g)
      it.gates[g] = g < 2 * kHidden ? logistic(it.gates[g]) : std::tanh(it.gates[g]);
    for (std::size_t i = 0; i < kHidden; ++i) it.cell[i] = it.gates[i] * it.gates[2 * kHidden + i];
    for (const std::int32_t child : graph_.children_of(v)) {
      Values& forget = it.forgets.emplace_back(of_x.begin() + 3 * kHidden, of_x.end());
      add_product(at(child).shown, p_.at("tree_lstm.forget"), forget);
      for (std::size_t i = 0; i < kHidden; ++i) {
        forget[i] = logistic(forget[i]);
        it.cell[i] += forget[i] * at(child).cell[i];
      }
    }
    for (std::size_t i = 0; i < kHidden; ++i) it.shown[i] = it.gates[kHidden + i] * std::tanh(it.cell[i]);
  }

  /// Its parents have added to the gradients of what it shows and of its cell.
  void backward(std::int32_t v, Parameters& gradients) {
    NaiveVertex& it = at(v);
    const Values of_loss = weights(v);
    Values of_gates(3 * kHidden), of_of_x(4 * kHidden), of_sum(kHidden), of_x(kWide);
    for (std::size_t i = 0; i < kHidden; ++i) {
      const double in = it.gates[i], out = it.gates[kHidden + i], update = it.gates[2 * kHidden + i],
                   t = std::tanh(it.cell[i]);
      gradients["weighed.numbers"][static_cast<std::size_t>(token(v)) * kHidden + i] += it.shown[i];
      it.of_shown[i] += of_loss[i];
      it.of_cell[i] += it.of_shown[i] * out * (1 - t * t);
      of_gates[i] = it.of_cell[i] * update * in * (1 - in);
      of_gates[kHidden + i] = it.of_shown[i] * t * out * (1 - out);
      of_gates[2 * kHidden + i] = it.of_cell[i] * in * (1 - update * update);
    }
    std::ranges::copy(of_gates, of_of_x.begin());
    add_gradients(it.sum, p_.at("tree_lstm.recurrent"), of_gates, of_sum, gradients["tree_lstm.recurrent"]);
    for (std::size_t c = 0; c < it.forgets.size(); ++c) {
      NaiveVertex& child = at(graph_.children_of(v)[c]);
      Values of_forget(kHidden);
      for (std::size_t i = 0; i < kHidden; ++i) {
        const double forget = it.forgets[c][i];
        of_forget[i] = it.of_cell[i] * child.cell[i] * forget * (1 - forget);
        of_of_x[3 * kHidden + i] += of_forget[i];
        child.of_cell[i] += it.of_cell[i] * forget;
        child.of_shown[i] += of_sum[i];
      }
      add_gradients(child.shown, p_.at("tree_lstm.forget"), of_forget, child.of_shown,
                    gradients["tree_lstm.forget"]);
    }
    add_gradients(it.x, p_.at("tree_lstm.input"), of_of_x, of_x, gradients["tree_lstm.input"]);
    for (std::size_t i = 0; i < of_of_x.size(); ++i) gradients["tree_lstm.bias"][i] += of_of_x[i];
    for (std::size_t i = 0; i < kWide; ++i)
      gradients["vertex_embedding.table"][static_cast<std::size_t>(token(v)) * kWide + i] += of_x[i];
  }

  const Parameters& p_;
  const VertexGraph& graph_;
  std::vector<NaiveVertex> vertices_;
};

}  // namespace alpa
