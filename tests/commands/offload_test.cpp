// Models that take more than the devices have, trained with states or activations in the host's memory.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/plan/plan_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::HasSubstr;

class Offload : public Workplace {
 protected:
  void SetUp() override {
    write_model(256, 8);  // of which states take most
    write_cluster(1 << 30);
  }

  void write_model(int width, int batch) const {
    write("model.toml", fmt::format(R"(
base = "{}/configs/models/image-mlp.toml"
name = "perceptron"
[dimensions]
model = {}
layers = 6
[training]
batch = {}
)",
                                    ALPA_SOURCE_DIR, width, batch));
  }

  void write_cluster(std::int64_t memory_bytes) const {
    write("cluster.toml", fmt::format(R"(
name = "small"
device = "CPU, 1 thread"
nodes = 1
devices_per_node = 2
memory_gib = {:.15g}
f32_tflops = 0.06
memory_gb_per_s = 8
host_gb_per_s = 2
launch_us = 1
within_node = {{ latency_us = 5, gb_per_s = 3 }}
)",
                                      static_cast<double>(memory_bytes) / (1 << 30)));
  }

  std::string planning(const std::string& name, const std::string& options) const {
    return "alpa-plan model.toml --cluster cluster.toml --rematerialize never " + options + " --out " + name +
           ".h5";
  }

  std::int64_t arena(const std::string& plan) const {
    std::int64_t most = 0;
    for (const MeshPrediction& mesh : read_plan(path(plan + ".h5")).prediction.meshes)
      most = std::max(most, mesh.memory.total);
    return most;
  }

  /// Under plans that differ in nothing but what they offload.
  void expect_same_of_less_memory(const std::string& options, int ranks, const std::string& offloaded,
                                  double part = 2.0 / 3) {
    const CommandResult planned = run(planning("free", options));
    ASSERT_EQ(planned.status, 0) << planned.output;
    const auto limit = static_cast<std::int64_t>(part * static_cast<double>(arena("free")));
    write_cluster(limit);
    EXPECT_THAT(run(planning("none", options)).output, HasSubstr("no plan fits"));
    const CommandResult offloading =
        run(planning("offloaded", options + " --overlap all --offload " + offloaded));
    ASSERT_EQ(offloading.status, 0) << offloading.output;
    EXPECT_LE(arena("offloaded"), limit);
    train("free", ranks, "on_device", "--steps 6");
    train("offloaded", ranks, "on_host", "--steps 6");
    train("free", ranks, "both", "--steps 3");
    train("offloaded", ranks, "both", "--steps 6 --resume must");
    for (const char* other : {"on_host", "both"}) {
      EXPECT_EQ(numbers("on_device", "loss"), numbers(other, "loss")) << other;
      EXPECT_EQ(numbers("on_device", "gradient_norm"), numbers(other, "gradient_norm")) << other;
      EXPECT_EQ(difference(checkpoint("on_device", 6), checkpoint(other, 6)), "") << other;
    }
  }
};

TEST_F(Offload, OfHalfAsMuchAgainAsADeviceHoldsTrainsToTheBit) {
  expect_same_of_less_memory("--micro-batches 1 --method serial", 1, "optimizer");
}

TEST_F(Offload, OfHalfAsMuchAgainAsTwoDevicesHoldTrainsToTheBit) {
  expect_same_of_less_memory("--micro-batches 1 --method data-parallel --sync each", 2, "optimizer");
}

TEST_F(Offload, OfParametersTooTrainsToTheBit) {
  expect_same_of_less_memory("--micro-batches 1 --method data-parallel --sync each", 2, "states", 0.45);
}

TEST_F(Offload, OfActivationsTrainsToTheBit) {
  write_model(64, 4096);
  expect_same_of_less_memory("--micro-batches 2 --method data-parallel --sync each", 2, "activations");
  EXPECT_THAT(run("alpa-plan explain offloaded.h5 --full").output,
              HasSubstr("layers with activations on the host: "));
}

TEST_F(Offload, OfActivationsOfMicroBatchesInFlightTrainsToTheBit) {
  write_model(64, 4096);
  expect_same_of_less_memory("--micro-batches 4 --method inter-only --layers 2", 2, "activations");
}

TEST_F(Offload, IsSaidOfAPlan) {
  ASSERT_EQ(run(planning("free", "--method serial --micro-batches 1")).status, 0);
  write_cluster(arena("free") * 2 / 3);
  const CommandResult planned =
      run(planning("offloaded", "--method serial --micro-batches 1 --offload auto"));
  ASSERT_EQ(planned.status, 0) << planned.output;
  EXPECT_THAT(run("alpa-plan explain offloaded.h5 --full").output, HasSubstr("on its host "));
  EXPECT_THAT(run("alpa-plan simulate offloaded.h5 --program").output, HasSubstr("[fetches]"));
  EXPECT_THAT(run("alpa-plan compare free.h5 offloaded.h5").output,
              HasSubstr("other states rest in the host's memory"));
}

}  // namespace
}  // namespace alpa
