// The models that come with the suite are planned for the clusters that come with it.
#include <gmock/gmock.h>

#include "libalpa/plan/plan_file.h"
#include "libalpa/planner/search/baselines.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

const std::string configs = ALPA_SOURCE_DIR "/configs";

struct Shipped {
  std::string model, cluster;
  int devices = 0;
  std::string method = "auto";
};

class ShippedModels : public Workplace, public testing::WithParamInterface<Shipped> {};

TEST_P(ShippedModels, ArePlanned) {
  const Shipped& s = GetParam();
  // Beside a method the search has the rest of the time.
  const std::string method = s.method + (s.method == "auto" ? "" : " --time-limit 1");
  const CommandResult planned = run("alpa-plan " + configs + "/models/" + s.model + ".toml --cluster " +
                                    configs + "/clusters/" + s.cluster + ".toml --devices " +
                                    std::to_string(s.devices) + " --method " + method + " --out plan.h5");
  ASSERT_EQ(planned.status, 0) << planned.output;
  const CommandResult checked = run("alpa-plan check plan.h5");
  EXPECT_EQ(checked.status, 0) << checked.output;
}

INSTANTIATE_TEST_SUITE_P(
    On, ShippedModels,
    testing::Values(
        Shipped{"bert", "p3.16xlarge-8", 8}, Shipped{"bert", "dgx-h100-16", 16, "megatron"},
        Shipped{"gpt2-124m", "p3.16xlarge-8", 8}, Shipped{"gpt2-124m", "dgx-h100-16", 16, "megatron"},
        Shipped{"gpt-350m", "p3.16xlarge-8", 16, "megatron"},
        Shipped{"llama-1b", "dgx-h100-16", 8, "megatron"}, Shipped{"llama-tiny", "local-4", 4},
        Shipped{"vit", "p3.16xlarge-8", 8, "megatron"}, Shipped{"moe", "p3.16xlarge-8", 8, "megatron"},
        Shipped{"deepseek-moe-tiny", "local-4", 4, "megatron"},
        Shipped{"unet", "p3.16xlarge-8", 8, "megatron"}, Shipped{"conformer", "p3.16xlarge-8", 8, "megatron"},
        Shipped{"lstm", "p3.16xlarge-8", 8, "megatron"}, Shipped{"gru", "p3.16xlarge-8", 8, "megatron"},
        Shipped{"wide-resnet-250m", "p3.16xlarge-8", 16, "megatron"},
        Shipped{"vgg19-22k", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"resnet-101", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"densenet-121", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"inception-v3", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"googlenet", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"ncf", "p3.16xlarge-8", 16, "data-parallel"},
        Shipped{"lm1b", "p3.16xlarge-8", 16, "megatron"}, Shipped{"wide-resnet-digits", "local-4", 4},
        Shipped{"mlp", "local-4", 4}, Shipped{"example-own-block", "local-4", 4},
        Shipped{"image-mlp", "local-4", 4}),
    [](const auto& test) {
      std::string name = test.param.model + "_" + std::to_string(test.param.devices) + test.param.method;
      std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
      return name;
    });

class LargeModel : public Workplace {};

TEST_F(LargeModel, IsPlannedNoSlowerThanByAnyBaseline) {
  const CommandResult planned = run("alpa-plan " + configs + "/models/gpt-1.3b.toml --cluster " + configs +
                                    "/clusters/p3.16xlarge-8.toml --devices 8 --out plan.h5");
  ASSERT_EQ(planned.status, 0) << planned.output;
  const Plan plan = read_plan(path("plan.h5"));
  EXPECT_EQ(plan.devices(), 8);
  const std::vector<Candidate>& candidates = plan.prediction.candidates;
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates[0].verdict, "chosen");
  EXPECT_EQ(candidates[0].step_s, plan.prediction.step_s);
  for (const std::string& baseline : baseline_names()) {
    // The search looks at some itself, some are tried where they are asked for; one is of experts, one of
    // small factors.
    if (baseline == "intra-only" || baseline == "inter-only" || baseline == "deepspeed-moe" ||
        baseline == kFactorsMethod || !is_wanted(PlannerOptions(), baseline))
      continue;
    bool was_tried = false;
    for (const Candidate& candidate : candidates) {
      if (candidate.method.find(baseline) == std::string::npos) continue;
      was_tried = true;
      if (candidate.step_s > 0)  // it fits
        EXPECT_GE(candidate.step_s, plan.prediction.step_s) << candidate.method;
      else
        EXPECT_THAT(candidate.verdict,
                    testing::AnyOf(testing::HasSubstr(" need "), testing::HasSubstr(" a step "),
                                   testing::HasSubstr(" has no room for ")))
            << candidate.method;
    }
    EXPECT_TRUE(was_tried) << baseline;
  }
}

}  // namespace
}  // namespace alpa
