// Adafactor as its paper writes it, in plain loops over a parameter, beside what a training graph does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libalpa/graph/autodiff.h"
#include "libalpa/ops/catalog.h"
#include "tests/support/interpreter.h"

namespace alpa {
namespace {

constexpr std::size_t kOuter = 2, kRows = 6, kColumns = 5, kBias = 3;
constexpr double kRate = 0.1, kDecay = 0.2;

/// loss = sum of weights * x + sum of bias * y, so that x and y are the gradients. The longest dimensions of
/// the weights are the first and the last.
Graph linear_model() {
  GraphBuilder g(op_catalog());
  g.begin_layer("sum");
  g.graph().samples = 1;
  const ValueIndex x = g.input(InputKind::data, {DType::f32, {1, 6, 2, 5}}, "x");
  const ValueIndex y = g.input(InputKind::data, {DType::f32, {1, 3}}, "y");
  const Initializer drawn{Initializer::Kind::normal, 1};
  const ValueIndex weights = g.state("weights", {DType::f32, {6, 2, 5}}, drawn, true);
  const ValueIndex bias = g.state("bias", {DType::f32, {3}}, drawn, true);
  const ValueIndex of_weights = g.add("einsum", {x, weights}, {{"equation", "b i j k, i j k -> b"}});
  const ValueIndex of_bias = g.add("einsum", {y, bias}, {{"equation", "b i, i -> b"}});
  g.graph().loss = g.add("reduce_sum", {g.add("add", {of_weights, of_bias})});
  return g.finish();
}

TrainingOptions options() {
  TrainingOptions options;
  options.optimizer = OptimizerKind::adafactor;
  options.weight_decay = kDecay;
  options.gradient_clip = 0;
  return options;
}

double rms(const Values& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// w after a step along u, clipped and relative to the weights.
void step_along(const Values& u, double decay, Values& w) {
  const double size = kRate * std::max(1e-3, rms(w)) / std::max(1.0, rms(u));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= kRate * decay * w[i] + size * u[i];
}

struct Expected {
  Values weights, bias;
  double rows[kOuter][kRows] = {}, columns[kOuter][kColumns] = {}, squares[kBias] = {};

  void update(const Values& x, const Values& y, double t) {
    const double kept = 1 - std::pow(t, -0.8);
    const auto place = [](std::size_t o, std::size_t r, std::size_t c) {
      return (r * kOuter + o) * kColumns + c;
    };
    Values u(x.size());
    for (std::size_t o = 0; o < kOuter; ++o) {
      double mean = 0;
      for (std::size_t r = 0; r < kRows; ++r) {
        double square = 0;
        for (std::size_t c = 0; c < kColumns; ++c) square += std::pow(x[place(o, r, c)], 2) / kColumns;
        rows[o][r] = kept * rows[o][r] + (1 - kept) * square;
        mean += rows[o][r] / kRows;
      }
      for (std::size_t c = 0; c < kColumns; ++c) {
        double square = 0;
        for (std::size_t r = 0; r < kRows; ++r) square += std::pow(x[place(o, r, c)], 2) / kRows;
        columns[o][c] = kept * columns[o][c] + (1 - kept) * square;
      }
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t c = 0; c < kColumns; ++c)
          u[place(o, r, c)] = x[place(o, r, c)] / std::sqrt(rows[o][r] * columns[o][c] / mean);
    }
    step_along(u, kDecay, weights);
    Values v(kBias);
    for (std::size_t i = 0; i < kBias; ++i) {
      squares[i] = kept * squares[i] + (1 - kept) * y[i] * y[i];
      v[i] = y[i] / std::sqrt(squares[i]);
    }
    step_along(v, 0, bias);
  }
};

class Adafactor : public testing::Test {
 protected:
  Adafactor() {
    for (const State& state : graph_.states)
      set(state.name,
          Values(static_cast<std::size_t>(element_count(value_of(graph_, state.value).type.shape))));
    for (const char* name : {"weights", "bias"})
      set(name, rounded(uniform_values(std::ssize(get(name)), -1, 1, 5), DType::f32));
  }

  ValueIndex find(const std::string& name) const {
    for (const ValueIndex v : graph_.values.indices())
      if (graph_.values[v].kind != ValueKind::computed && graph_.values[v].name == name) return v;
    return {};
  }
  void set(const std::string& name, const Values& values) { step_.set(find(name), values); }
  Values get(const std::string& name) const { return step_.get(find(name)); }

  /// Gradients are x and y, as the loss is scaled by `loss_scale` and the update is given that scale.
  void update(const Values& x, const Values& y, double t, double loss_scale = 1) {
    set("x", x);
    set("y", y);
    set("loss_scale", {loss_scale});
    set("update_scalars", {kRate, 1, 1, 1, 1 / loss_scale, t});
    step_.run_micro_batch(true, {});
    step_.run_update({});
  }

  std::map<std::string, Values> states() const {
    std::map<std::string, Values> states;
    for (const State& state : graph_.states) states[state.name] = step_.get(state.value);
    return states;
  }

  Graph graph_ = training_graph(linear_model(), op_catalog(), options());
  std::unique_ptr<Device> device_ = make_cpu_device(1);
  Interpreter step_{*device_, graph_};
};

TEST_F(Adafactor, KeepsMeanSquaresOfRowsAndColumnsAlone) {
  std::map<std::string, std::size_t> sizes;
  for (const auto& [name, values] : states()) sizes[name] = values.size();
  EXPECT_EQ(
      sizes,
      (std::map<std::string, std::size_t>{
          {"bias", 3}, {"bias.squares", 3}, {"weights", 60}, {"weights.columns", 10}, {"weights.rows", 12}}));
}

TEST_F(Adafactor, StepsAsThePaperWritesIt) {
  Expected expected{get("weights"), get("bias")};
  for (int t = 1; t <= 4; ++t) {
    const Values x = rounded(uniform_values(60, -2, 2, 10 + static_cast<std::uint64_t>(t)), DType::f32),
                 y = rounded(uniform_values(3, -9, 9, 20 + static_cast<std::uint64_t>(t)), DType::f32);
    expected.update(x, y, t);
    update(x, y, t, 1024);
    const Values weights = get("weights"), bias = get("bias");
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected.weights[i], 1e-5);
    for (std::size_t i = 0; i < bias.size(); ++i) EXPECT_NEAR(bias[i], expected.bias[i], 1e-5);
  }
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t o = 0; o < kOuter; ++o)
      EXPECT_NEAR(get("weights.rows")[r * kOuter + o], expected.rows[o][r], 1e-5);
}

// Rows without a gradient, as of tokens that a batch lacks.
TEST_F(Adafactor, StaysWhereTheGradientIsZero) {
  const Values before = get("weights");
  Values x(60, 0.0);
  x[7] = 1;
  update(x, {0, 0, 0}, 1);
  const Values after = get("weights");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double decayed = (1 - kRate * kDecay) * before[i];
    EXPECT_NEAR(after[i], i == 7 ? decayed - kRate * rms(before) : decayed, 1e-5);
  }
}

TEST_F(Adafactor, LeavesEverythingAsItIsWhereTheNormIsNotFinite) {
  update(uniform_values(60, -1, 1, 1), {1, 2, 3}, 1);
  const auto before = states();
  Values x = uniform_values(60, -1, 1, 2);
  x[0] = std::numeric_limits<double>::infinity();
  update(x, {1, 2, 3}, 2);
  EXPECT_EQ(states(), before);
}

}  // namespace
}  // namespace alpa
