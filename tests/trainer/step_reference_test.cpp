#include "libalpa/trainer/step_reference.h"

#include <gtest/gtest.h>

#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

class StepReferenceOfAPlan : public ::testing::Test {
 protected:
  StepReference of(const std::string& device, bool runs_on_planned_cluster) const {
    return step_reference(plan_, tiny_.graph(), DType::bf16, device, runs_on_planned_cluster);
  }

  const TinyTraining tiny_{{"gpt", "data-parallel", 2, 2}};
  Plan plan_ = tiny_.plan();
};

TEST_F(StepReferenceOfAPlan, HasTheWorkAndTheTimeOfAStep) {
  plan_.prediction.step_s = 0.5;
  EXPECT_EQ(of("", false).predicted_step_s, 0.5);
  EXPECT_EQ(of("", false).flops, step_flops(tiny_.graph(), 2));
  plan_.prediction.step_s = 0;
  EXPECT_EQ(of("", false).predicted_step_s, std::nullopt);
}

TEST_F(StepReferenceOfAPlan, HasThePeakOfAllDevicesByTheirDataSheet) {
  const StepReference reference = of("NVIDIA A100-SXM4-80GB", true);
  EXPECT_EQ(reference.peak_flops_per_s, 2 * 312e12);
  EXPECT_EQ(reference.peak_origin, "data sheet");
}

TEST_F(StepReferenceOfAPlan, HasThePeakOfTheClusterWhereTheJobRunsOnIt) {
  plan_.cluster.bf16_flops_per_s = 1e12;
  StepReference reference = of("CPU, 2 threads", true);
  EXPECT_EQ(reference.peak_flops_per_s, 2e12);
  EXPECT_EQ(reference.peak_origin, "table");
  plan_.profile_fingerprint = "of a profile";
  EXPECT_EQ(of("CPU, 2 threads", true).peak_origin, "measured");
  reference = of("CPU, 2 threads", false);
  EXPECT_EQ(reference.peak_flops_per_s, std::nullopt);
  EXPECT_EQ(reference.peak_origin, "unknown");
}

TEST_F(StepReferenceOfAPlan, HasNoPeakOfEmulatedDevices) {
  EXPECT_EQ(of("", true).peak_flops_per_s, std::nullopt);
}

}  // namespace
}  // namespace alpa
