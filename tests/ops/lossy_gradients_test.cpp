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
  for (options.compression_rank = 1; options.compression_rank < 10; ++options.compression_rank) {
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

TEST(LossyGradients, AreRefusedWhereTheyHaveNoScaleOfTheirOwnOrAreNoF32) {
  TrainingOptions options;
  options.precision = Precision::f16;
  options.gradient_delay = 1;
  EXPECT_THAT([&] { gpt_with(options); }, ThrowsMessage<Error>(HasSubstr("those of f16 have another scale")));
}

}  // namespace
}  // namespace alpa
