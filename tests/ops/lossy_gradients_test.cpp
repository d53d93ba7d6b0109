#include "libalpa/graph/lossy_gradients.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Graph gpt_with(const TrainingOptions& options) {
  return training_graph(testing_models::tiny_gpt_forward(2), op_catalog(), options);
}

bool has_state(const Graph& graph, const std::string& name) {
  return std::ranges::count(graph.states, name, &State::name) > 0;
}

TEST(LossyGradients, AreInWordsWhatChangesResults) {
  TrainingOptions options;
  EXPECT_EQ(lossy_gradients_text(gpt_with(options)), "");
  options.gradient_wire = GradientWire::bf16;
  options.gradient_compression = GradientCompression::powersgd;
  options.compression_rank = 1;
  options.gradient_delay = 2;
  EXPECT_EQ(lossy_gradients_text(gpt_with(options)),
            "gradients are sent in bf16, sent as factors of rank 1 (PowerSGD), used 2 steps later");
}

// Of a tensor of m x n factors have rank (m + n) elements, which are to be half of m n at most.
TEST(LossyGradients, AreFactorsWhereTheseHaveHalfOfTheElementsAtMost) {
  TrainingOptions options;
  options.gradient_compression = GradientCompression::powersgd;
  for (options.compression_rank = 1; options.compression_rank < 7; ++options.compression_rank) {
    const Graph graph = gpt_with(options);
    for (const State& state : graph.states) {
      const Shape& shape = value_of(graph, state.value).type.shape;
      if (!state.is_parameter || shape.size() > 2) continue;
      const bool pays =
          shape.size() == 2 && 2 * options.compression_rank * (shape[0] + shape[1]) <= shape[0] * shape[1];
      EXPECT_EQ(has_state(graph, state.name + ".error"), pays) << state.name;
      EXPECT_EQ(has_state(graph, state.name + ".factor"), pays) << state.name;
    }
  }
}

TEST(LossyGradients, AreRefusedWhereStepsHaveScalesOfTheirOwn) {
  TrainingOptions options;
  options.precision = Precision::f16;
  options.gradient_delay = 1;
  const auto build = [&] { gpt_with(options); };
  EXPECT_THAT(build, ThrowsMessage<Error>(HasSubstr("those of f16 have another scale")));
  options.gradient_delay = 0;
  options.gradient_compression = GradientCompression::powersgd;
  EXPECT_THAT(build, ThrowsMessage<Error>(HasSubstr("those of f16 have another scale")));
}

TEST(LossyGradients, AreRefusedWhereNoneHasFewerElementsAsFactors) {
  TrainingOptions options;
  options.gradient_compression = GradientCompression::powersgd;
  options.compression_rank = 1000;
  EXPECT_THAT([&] { gpt_with(options); },
              ThrowsMessage<Error>(HasSubstr("factors of rank 1000 have more than half of the elements")));
}

// All that is sent of a gradient goes in its type: what is held back, and factors.
TEST(LossyGradients, AreSentInTheTypeOfTheWire) {
  TrainingOptions options;
  options.gradient_wire = GradientWire::bf16;
  options.gradient_compression = GradientCompression::powersgd;
  options.compression_rank = 1;
  options.gradient_delay = 1;
  const Graph graph = gpt_with(options);
  int products = 0;
  for (const Node& node : graph.nodes)
    if (node.op->name == "low_rank_product") {
      ++products;
      EXPECT_EQ(value_of(graph, node.results[0]).wire.sum_type, DType::bf16) << node.name;
    }
  EXPECT_GT(products, 0);
  for (const State& state : graph.states) {
    if (!state.name.ends_with(".gradient_before1")) continue;
    EXPECT_EQ(value_of(graph, state.value).wire.sum_type, DType::bf16) << state.name;
  }
}

}  // namespace
}  // namespace alpa
