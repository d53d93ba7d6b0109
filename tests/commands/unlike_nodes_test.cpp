// Clusters whose nodes differ, and machines that are not those of a profile.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kPreset = ALPA_SOURCE_DIR "/configs/clusters/p3.16xlarge-4-p4d.24xlarge-2.toml";

class UnlikeNodeCommands : public Workplace {
 protected:
  std::string output_of(const std::string& command, int ranks = 1) const {
    const CommandResult result = run(command, ranks);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  nlohmann::json facts_of(const std::string& plan) const {
    return nlohmann::json::parse(output_of("alpa-plan explain " + plan + " --json"));
  }
  /// "step 1.23 ms..." of a simulation.
  std::string simulated(const std::string& arguments) const {
    const std::string text = output_of("alpa-plan simulate " + arguments);
    const std::size_t begin = text.find("step ");
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_F(UnlikeNodeCommands, PlanSimulateAndExplainStagesOnThePresetOfBoth) {
  write("stages.toml", R"(
micro_batches = 2
[[stage]]
layers = 3
mesh = [32]
axes = ["free"]
[[stage]]
layers = 3
mesh = [16]
axes = ["free"]
)");
  output_of("alpa-plan " + tiny_gpt_ + " --cluster " + kPreset +
            " --pin stages.toml --time-limit 2 --out plan.h5");
  EXPECT_THAT(output_of("alpa-plan explain plan.h5"),
              AllOf(HasSubstr("  32: 0 - 31 (p3.16xlarge)  "), HasSubstr("  16: 32 - 47 (p4d.24xlarge)  "),
                    HasSubstr(" of 12.90 GiB ("), HasSubstr(" of 36.00 GiB ("),
                    HasSubstr("predicted " + simulated("plan.h5").insert(5, "time ") + " (")));
  const nlohmann::json facts = facts_of("plan.h5");
  EXPECT_EQ(facts["cluster"]["parts"][1]["device"], "NVIDIA A100 SXM4 40 GB");
  EXPECT_EQ(facts["stages"][0]["parts"], nlohmann::json({"p3.16xlarge"}));
  EXPECT_EQ(facts["stages"][1]["parts"], nlohmann::json({"p4d.24xlarge"}));
  EXPECT_THAT(output_of("alpa-plan check plan.h5"), HasSubstr("plan.h5"));
  EXPECT_THAT(output_of("alpa-plan what-if plan.h5 --compute x2"), HasSubstr("\nwith        compute x2\n"));
  output_of("alpa-plan report plan.h5 --out plan.html");
}

TEST_F(UnlikeNodeCommands, SweepRefusesThem) {
  const CommandResult result =
      run("alpa-plan sweep " + tiny_gpt_ + " --cluster " + kPreset + " --devices 8,16");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the nodes of cluster 'p3.16xlarge-4-p4d.24xlarge-2' differ"));
}

TEST_F(UnlikeNodeCommands, ExtrapolateWhatWasMeasuredToOtherMachinesAndSaySo) {
  output_of("alpa-profile " + tiny_gpt_ +
            " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --time-budget 10 --out profile.h5");
  std::string parts = "devices_per_node = 1\nbetween_nodes = { latency_us = 50, gb_per_s = 1 }\n";
  for (const auto& [name, tflops] : {std::pair{"slow", 0.01}, {"fast", 1.0}})
    parts += "[[part]]\nname = \"" + std::string(name) + "\"\ndevice = \"CPU\"\nnodes = 1\nmemory_gib = 2\n" +
             "f32_tflops = " + std::to_string(tflops) + "\nbf16_tflops = " + std::to_string(tflops) +
             "\nmemory_gb_per_s = 8\nlaunch_us = 1\nwithin_node = { latency_us = 5, gb_per_s = 3 }\n";
  write("parts.toml", parts);
  EXPECT_THAT(
      output_of("alpa-plan " + tiny_gpt_ +
                " --profile profile.h5 --cluster parts.toml --method megatron --out plan.h5"),
      AllOf(HasSubstr("'parts.toml' is not of the machines that the profile was measured on (device is "),
            HasSubstr(": measured costs are extrapolated, "), HasSubstr(" (extrapolated from a profile): "),
            HasSubstr("; costs are extrapolated from measurements on 1 node of 1 device (CPU")));
  const nlohmann::json facts = facts_of("plan.h5");
  EXPECT_EQ(facts["costs"], "extrapolated");
  EXPECT_THAT(facts["extrapolated_from"].get<std::string>(), StartsWith("1 node of 1 device (CPU"));
  EXPECT_THAT(output_of("alpa-plan explain plan.h5"),
              HasSubstr("predicted " + simulated("plan.h5 --profile profile.h5").insert(5, "time ") + " ("));
}

}  // namespace
}  // namespace alpa
