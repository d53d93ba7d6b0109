#include "libalpa/trainer/executor.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

constexpr int kSteps = 20;

class SameTraining : public testing::TestWithParam<TinyCase> {};

// Sums of f32 in another order: a few units in the last place per reduction, amplified by the training steps.
TEST_P(SameTraining, AsSerial) {
  static std::map<std::string, TinyCurve> serial;
  TinyCurve& reference = serial[GetParam().model];
  if (reference.losses.empty())
    reference = TinyTraining({GetParam().model, "serial", 1, 1}).run_on_threads(kSteps);
  const TinyCurve run = TinyTraining(GetParam()).run_on_threads(kSteps);
  ASSERT_LT(reference.losses.back(), reference.losses.front());
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(run.losses[i], reference.losses[i], 1e-5 * reference.losses[i]) << "step " << i;
    EXPECT_NEAR(run.norms[i], reference.norms[i], 1e-3 * reference.norms[i]) << "step " << i;
  }
}

std::vector<TinyCase> every_plan() {
  std::vector<TinyCase> cases;
  for (const char* model : {"gpt", "llama", "mlp", "bert"})
    for (const TinyCase& plan : std::vector<TinyCase>{{"", "serial", 1, 4},
                                                      {"", "serial", 1, 2, "1f1b", "always"},
                                                      {"", "data-parallel", 2, 1},
                                                      {"", "data-parallel", 4, 2},
                                                      {"", "zero-1", 2, 1},
                                                      {"", "zero-2", 2, 2},
                                                      {"", "zero-3", 2, 2},
                                                      {"", "zero-3", 4, 1},
                                                      {"", "tensor", 2, 1},
                                                      {"", "sequence", 2, 1},
                                                      {"", "sequence", 4, 1},
                                                      {"", "inter-only", 2, 4},
                                                      {"", "inter-only", 2, 4, "gpipe"},
                                                      {"", "inter-only", 2, 4, "1f1b", "always"},
                                                      {"", "mixed", 4, 4},
                                                      {"", "mixed", 4, 4, "gpipe"},
                                                      {"", "intra-only", 4, 1},
                                                      {"", "search", 4, 1},
                                                      {"", "search", 4, 2}}) {
      cases.push_back(plan);
      cases.back().model = model;
    }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, SameTraining, testing::ValuesIn(every_plan()),
                         [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
