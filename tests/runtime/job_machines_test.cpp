#include "libalpa/runtime/job_machines.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/support/index_literals.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Two stages of two devices, on two nodes.
Plan plan_on(const std::string& device, const std::string& profile) {
  Plan plan;
  plan.cluster.name = "there";
  plan.cluster.device = device;
  plan.cluster.nodes = 2;
  plan.cluster.devices_per_node = 2;
  plan.profile_fingerprint = profile;
  plan.meshes = {{0_d, {2}}, {2_d, {2}}};
  plan.stages = {{0, 1, 0_m}, {1, 2, 1_m}};
  return plan;
}

const std::string kHere = "CPU, 1 thread (AMD EPYC)";
const std::vector<int> kNodes{0, 0, 1, 1};

void expect_refusal(const Plan& plan, const JobMachines& job, const std::string& what,
                    const std::string& hint) {
  try {
    check_machines(plan, job);
    ADD_FAILURE() << "not refused: " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::allocation);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(what), HasSubstr(hint)));
  }
}

TEST(JobMachines, OfAProfileAreThoseItWasMeasuredOn) {
  EXPECT_EQ(check_machines(plan_on(kHere, "f00"), {kNodes, kHere}), "");
  EXPECT_EQ(check_machines(plan_on("NVIDIA H200", "f00"), {kNodes, "NVIDIA H200 (GPU-12)"}), "");
  expect_refusal(plan_on("NVIDIA H200", "f00"), {kNodes, kHere},
                 "measurements on NVIDIA H200, this job computes on " + kHere, "another --device");
}

TEST(JobMachines, WithOtherThreadsMakePredictionsForAnother) {
  EXPECT_THAT(check_machines(plan_on(kHere, "f00"), {kNodes, "CPU, 2 threads (AMD EPYC)"}),
              HasSubstr("for another machine"));
}

TEST(JobMachines, OfAClusterFileNeedNotBeThisJobs) {
  EXPECT_EQ(check_machines(plan_on("CPU, 1 thread", ""), {kNodes, kHere}), "");
  EXPECT_THAT(check_machines(plan_on("NVIDIA V100 SXM2 16 GB", ""), {kNodes, kHere}),
              HasSubstr("for another machine: there of NVIDIA V100 SXM2 16 GB, this job computes on CPU"));
}

TEST(JobMachines, HaveAsManyRanksOnEachNodeAsThePlanHasDevices) {
  const Plan plan = plan_on(kHere, "");
  expect_refusal(plan, {{0, 0, 0}, kHere}, "the plan is for 4 ranks, this job has 3", "--ntasks 4");
  expect_refusal(plan, {{0, 0, 0, 0}, kHere},
                 "nodes of 2 devices (2 + 2), this job has them on its nodes as 4", "--ntasks-per-node 2");
  expect_refusal(plan, {{0, 1, 0, 1}, kHere}, "as 1 + 1 + 1 + 1", "--distribution=block");
  expect_refusal(plan, {{0, 0, 0, 1}, kHere}, "as 3 + 1", "--ntasks-per-node 2");
}

TEST(JobMachines, ThatAreEmulatedMayBeOnAnyNodes) {
  const Plan plan = plan_on("NVIDIA H200", "f00");
  EXPECT_EQ(check_machines(plan, {kNodes, "emulated NVIDIA H200", DeviceKind::emulated}), "");
  EXPECT_THAT(check_machines(plan, {{0, 0, 0, 0}, "emulated NVIDIA H200", DeviceKind::emulated}),
              HasSubstr("(2 + 2), this job has them on its nodes as 4"));
}

TEST(JobMachines, MayBeAPartOfAPlansNode) {
  Plan plan = plan_on(kHere, "");
  plan.stages.pop_back();
  plan.meshes.pop_back();
  EXPECT_EQ(check_machines(plan, {{0, 0}, kHere}), "");
}

}  // namespace
}  // namespace alpa
