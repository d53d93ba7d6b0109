#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"
#include "tests/kernels/prepared_case.h"
#include "tests/kernels/reference.h"
#include "tests/support/interpreter.h"

namespace alpa {
namespace {

/// Operand `operand` becomes what the operator of that name makes of the operands before it.
void follow(PreparedCase& p, std::size_t operand, std::string_view op, const std::vector<std::size_t>& of) {
  std::vector<TensorType> types;
  std::vector<Values> values;
  for (const std::size_t i : of) {
    types.push_back(p.operands[i]);
    values.push_back(p.values[i]);
  }
  p.values[operand] = reference(op_catalog().find(op), {types, p.attributes}, values)[0];
}

/// cross_entropy takes the maximum and the sum of exponentials as operands, but its gradient is that of the
/// loss as a function of the logits alone, so they follow the logits here. The statistics of batch_norm
/// likewise.
void complete(PreparedCase& p) {
  if (p.op->name == "cross_entropy") {
    follow(p, 2, "row_max", {0});
    follow(p, 3, "row_sum_exp", {0, 2});
  } else if (p.op->name.starts_with("batch_norm")) {
    follow(p, 1, "channel_mean", {0});
    follow(p, 2, "channel_variance", {0, 1});
  }
}

/// sum(weights * first result) with element `element` of an operand moved by `step`.
double moved_loss(PreparedCase p, const Values& weights, std::size_t operand, std::size_t element,
                  double step) {
  p.values[operand][element] += step;
  complete(p);
  const Values result = p.expected()[0];
  double loss = 0;
  for (std::size_t i = 0; i < result.size(); ++i) loss += weights[i] * result[i];
  return loss;
}

/// The operator and the nodes that its description gives as its gradient, on states of one graph.
struct GradientGraph {
  Graph graph;
  std::vector<ValueIndex> operands, gradients;
  ValueIndex weights;

  explicit GradientGraph(const PreparedCase& p) {
    GraphBuilder g(op_catalog());
    for (std::size_t i = 0; i < p.operands.size(); ++i)
      operands.push_back(g.state("operand " + std::to_string(i), p.operands[i], {}, false));
    const std::vector<ValueIndex> results = g.add_all(p.op->name, operands, p.attributes);
    weights = g.state("weights", p.results[0], {}, false);
    std::vector<ValueIndex> result_gradients(results.size());
    result_gradients[0] = weights;
    const Node node = g.graph().nodes.back();
    gradients = p.op->gradient(g, node, result_gradients);
    graph = g.finish();
  }
};

void expect_gradients(PreparedCase p) {
  complete(p);
  const GradientGraph g(p);
  const Values weights = rounded(uniform_values(element_count(p.results[0].shape), -1, 1, 77), DType::f32);
  const auto device = make_cpu_device(1);
  Interpreter interpreter(*device, g.graph);
  for (std::size_t i = 0; i < p.values.size(); ++i) interpreter.set(g.operands[i], p.values[i]);
  interpreter.set(g.weights, weights);
  interpreter.run_forward(kPoint);
  for (std::size_t i = 0; i < g.gradients.size(); ++i) {
    if (g.gradients[i] < 0) continue;
    const Values gradient = interpreter.get(g.gradients[i]);
    ASSERT_EQ(gradient.size(), p.values[i].size());
    // Some elements spread over the operand: each costs two runs of the loop nest.
    const std::size_t stride = std::max<std::size_t>(1, gradient.size() / 12);
    for (std::size_t element = 0; element < gradient.size(); element += stride) {
      // In f64 a step of 1e-5 leaves an error near 1e-9; the tolerance is that of sums in f32.
      const double difference =
          (moved_loss(p, weights, i, element, 1e-5) - moved_loss(p, weights, i, element, -1e-5)) / 2e-5;
      ASSERT_NEAR(gradient[element], difference, 1e-4 * (1 + std::abs(difference)))
          << "operand " << i << ", element " << element;
    }
  }
}

/// Small enough for finite differences.
bool is_small(const PreparedCase& p) {
  return flops_of(*p.op, p.call()) + static_cast<double>(bytes_moved_by(*p.op, p.call())) < 2e5;
}

class Gradient : public ::testing::TestWithParam<std::string> {};

TEST_P(Gradient, AgreesWithFiniteDifferencesOfTheLoopNest) {
  int checked = 0;
  for (const OpCase& c : cases_of(op_catalog().find(GetParam()))) {
    SCOPED_TRACE(case_text(c));
    const PreparedCase p = prepare(c, DType::f32);
    if (!is_small(p)) continue;
    expect_gradients(p);
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

std::vector<std::string> differentiable_ops() {
  std::vector<std::string> names;
  for (const OpDef* op : op_catalog().all())
    if (op->gradient) names.emplace_back(op->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Op, Gradient, ::testing::ValuesIn(differentiable_ops()), kOpName);

}  // namespace
}  // namespace alpa
