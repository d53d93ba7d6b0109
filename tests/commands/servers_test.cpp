// Plans some of whose nodes help to add up (alpa-plan --servers).
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "libalpa/h5/file.h"
#include "libalpa/plan/plan_columns.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Servers : public Workplace {
 protected:
  Servers() {
    write("cluster.toml", R"(
name = "six"
device = "CPU, 1 thread"
nodes = 6
devices_per_node = 1
memory_gib = 1
f32_tflops = 0.05
memory_gb_per_s = 8
launch_us = 1
host_gb_per_s = 2
within_node = { latency_us = 5, gb_per_s = 3 }
between_nodes = { latency_us = 5, gb_per_s = 0.01 }
)");
  }

  CommandResult plan(const std::string& name, const std::string& options) const {
    return run("alpa-plan " ALPA_SOURCE_DIR "/configs/models/gpt-demo.toml --effort quick --force --out " +
               name + ".h5 " + options +
               (options.find("--cluster") == std::string::npos ? " --cluster cluster.toml" : ""));
  }
  std::string output_of(const CommandResult& result) const {
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
  double step_s(const std::string& name) const {
    return nlohmann::json::parse(output_of(run("alpa-plan explain " + name + ".h5 --json")))["step_s"];
  }
};

const std::string kInOneSum = "--devices 4 --method data-parallel --micro-batches 1 --sync one ";

TEST_F(Servers, MakeStepsShorterAndAreSaidOfPlansAndRuns) {
  output_of(plan("alone", kInOneSum));
  EXPECT_THAT(output_of(plan("served", kInOneSum + "--servers 2")),
              AllOf(HasSubstr("gpt-demo on 4 devices and 2 servers of 'six'"), Not(HasSubstr("warning"))));
  EXPECT_LT(step_s("served"), step_s("alone"));
  EXPECT_THAT(run("alpa-plan compare alone.h5 served.h5").output, HasSubstr("servers: 0 | 2"));
  EXPECT_EQ(output_of(run("alpa-plan check served.h5")).find("servers"), std::string::npos);
  const nlohmann::json facts = nlohmann::json::parse(output_of(run("alpa-plan explain served.h5 --json")));
  EXPECT_EQ(facts["cluster"]["servers"], 2);
  // Each is priced as it runs, in whatever order.
  for (const auto& [one, other] : {std::pair{"alone", "served"}, {"served", "alone"}}) {
    const nlohmann::json asked = nlohmann::json::parse(
        output_of(run(std::string("alpa-plan explain ") + one + ".h5 --why-not " + other + ".h5 --json")));
    EXPECT_NEAR(asked["plan"]["step_s"], step_s(one), 1e-9);
    EXPECT_NEAR(asked["other"]["step_s"], step_s(other), 1e-9);
  }

  const CommandResult trained =
      run("alpa-train served.h5 --data synthetic:64 --run-dir run --steps 3 --device emulated", 6);
  EXPECT_THAT(output_of(trained), HasSubstr("on 6 ranks, 2 of which serve"));
  EXPECT_THAT(
      run("alpa-train served.h5 --data synthetic:64 --run-dir other --steps 3 --device emulated", 5).output,
      HasSubstr("the plan is for 6 ranks, 2 of which serve, this job has 5"));
}

TEST_F(Servers, AreBesideWhateverElseIsTriedForAPlan) {
  for (const char* const options : {"--devices 4 --servers 2", "--devices 2 --servers 1 --method serial",
                                    "--servers 2 --method megatron"})
    EXPECT_EQ(plan("plan", options).status, 0) << options;
}

TEST_F(Servers, ThatHaveNothingToDoAreWarnedOf) {
  const char* const warning = "the servers of this plan have nothing to do";
  EXPECT_THAT(plan("plan", "--devices 4 --servers 2 --method zero-2").output, HasSubstr(warning));
  EXPECT_THAT(plan("plan", "--devices 4 --servers 2 --method inter-only").output, HasSubstr(warning));
}

TEST_F(Servers, MayHoldTheStates) {
  const std::string options = "--devices 4 --servers 2 --staleness 3 --micro-batches 1";
  const char* const stale =
      "servers hold the optimizer's states; parameters are at most 3 steps old, which differs from run to "
      "run";
  EXPECT_THAT(output_of(plan("stale", options)),
              AllOf(HasSubstr(stale), HasSubstr("by data-parallel"), Not(HasSubstr("warning"))));
  output_of(plan("alone", kInOneSum));
  EXPECT_THAT(run("alpa-plan compare alone.h5 stale.h5").output, HasSubstr("staleness: none | 3"));
  EXPECT_EQ(output_of(run("alpa-plan check stale.h5")).find("error"), std::string::npos);
  EXPECT_THAT(output_of(run("alpa-plan simulate stale.h5 --program")),
              AllOf(HasSubstr("take"), HasSubstr("push"), HasSubstr("collect"), HasSubstr("publish")));
  const std::vector<std::int64_t> owners =
      H5Reader(path("stale.h5"), kPlanFormat, kPlanVersion).int64s("/sync/owners/owner");
  EXPECT_EQ(std::set<std::int64_t>(owners.begin(), owners.end()), (std::set<std::int64_t>{0, 1}));
  EXPECT_THAT(output_of(run("alpa-plan explain alone.h5 --why-not stale.h5")), HasSubstr("stale.h5"));
  EXPECT_THAT(run("h5dump -d /sync/way stale.h5").output,
              HasSubstr("summed up at 1 server, which updates it"));
  const CommandResult trained = run(
      "alpa-train stale.h5 --data synthetic:64 --run-dir run --steps 9 --progress-s 0.01 --device emulated",
      6);
  EXPECT_THAT(output_of(trained), AllOf(HasSubstr(stale), HasSubstr("step 9/9")));
  EXPECT_THAT(run("alpa-train tune stale.h5 --data synthetic:64 --out tuned.h5 --device emulated", 6).output,
              HasSubstr("has its states at servers, which tuning tries nothing else for"));
}

// Which devices hold what is of the nodes that it was planned for.
TEST_F(Servers, ThatHoldStatesAreNotComparedOnOtherNodes) {
  output_of(plan("alone", kInOneSum));
  const std::string cluster = run("cat cluster.toml").output;
  write("pairs.toml",
        std::regex_replace(cluster, std::regex("devices_per_node = 1"), "devices_per_node = 2"));
  output_of(plan("pairs", "--cluster pairs.toml --devices 4 --servers 1 --staleness 1 --micro-batches 1"));
  const CommandResult result = run("alpa-plan explain alone.h5 --why-not pairs.h5");
  EXPECT_EQ(result.status, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("'pairs.h5' has servers of 2 devices, nodes of cluster 'six' have 1"));
}

TEST_F(Servers, AreRefusedWhereTheyCannotBe) {
  const auto expect_refused = [&](const std::string& options, const char* message) {
    const CommandResult result = plan("plan", options);
    EXPECT_EQ(result.status, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr(message));
  };
  expect_refused("--devices 5 --servers 2", "--servers 2: cluster 'six' has 6 nodes, 5 of these compute");
  expect_refused("--servers -1", "servers");
  expect_refused("--preset byteps", "--preset byteps without --servers");
  const std::string stale = "--devices 4 --servers 2 --staleness 1 ";
  expect_refused("--staleness 1", "--staleness 1: without --servers, which hold the optimizer's states then");
  expect_refused("--devices 4 --servers 2 --staleness 17", "staleness");
  write("limits.toml", "most_zero = 1\n");
  write("small.toml",
        "name = \"small\"\ndevice = \"CPU, 1 thread\"\nnodes = 5\ndevices_per_node = 1\nmemory_gib = 0.07\n"
        "f32_tflops = 0.05\nmemory_gb_per_s = 8\nlaunch_us = 1\n"
        "within_node = { latency_us = 5, gb_per_s = 3 }\n"
        "between_nodes = { latency_us = 5, gb_per_s = 0.1 }\n");
  expect_refused(stale + "--preset byteps", "--staleness 1: together with --preset byteps");
  const CommandResult crowded = plan("plan", "--devices 4 --servers 1 --staleness 16 --cluster small.toml");
  EXPECT_EQ(crowded.status, 4) << crowded.output;
  EXPECT_THAT(crowded.output,
              AllOf(HasSubstr("a device takes"), HasSubstr("more --servers, a smaller --staleness")));
  expect_refused(stale + "--constraints limits.toml", "together with --constraints");
  expect_refused(stale + "--method zero-1", "together with --method zero-1");
  expect_refused(stale + "--updates next-forward", "together with --updates next-forward");
  expect_refused(stale + "--owners even", "together with --owners even");
  expect_refused(stale + "--sync ddp", "together with --sync ddp");
  write("gpus.toml",
        "name = \"gpus\"\ndevice = \"NVIDIA V100 16 GB\"\nnodes = 4\ndevices_per_node = 1\n"
        "memory_gib = 16\nf32_tflops = 14\nmemory_gb_per_s = 800\nlaunch_us = 5\n"
        "within_node = { latency_us = 5, gb_per_s = 40 }\n"
        "between_nodes = { latency_us = 20, gb_per_s = 3 }\n");
  expect_refused("--cluster gpus.toml --servers 2", "GPUs add up by NCCL");
}

}  // namespace
}  // namespace alpa
