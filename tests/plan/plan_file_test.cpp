#include "libalpa/plan/plan_file.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PlanFile : public testing::Test {
 protected:
  std::filesystem::path written(const std::string& name, const Plan& plan) {
    const std::filesystem::path path = folder_.path() / name;
    write_plan(path, plan, lowered_.graph, {});
    return path;
  }
  static std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    return text + "exit " + std::to_string(pclose(pipe));
  }

  TemporaryFolder folder_;
  Lowered lowered_ = two_stages_of_two();
};

TEST_F(PlanFile, HoldsThePlan) { EXPECT_EQ(read_plan(written("a.h5", lowered_.plan)), lowered_.plan); }

TEST_F(PlanFile, HoldsHowTheTimeOfACandidateIsSplit) {
  Plan plan = lowered_.plan;
  plan.prediction.candidates.push_back({"another", 0.5, 7, "slower", {0.1, 0.2, 0.3, 0.4}, "gpipe"});
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsTheWaysOfTransfersAndWhatTheyTake) {
  Plan plan = lowered_.plan;
  ASSERT_EQ(plan.prediction.transfers.size(), plan.transfers.size());
  plan.transfers[0].way = {TransferStrategy::local_all_gather, 1};
  plan.transfers[1].way = {TransferStrategy::broadcast, 16};
  plan.prediction.transfers[1] = {0.25, 1000, 500};
  plan.prediction.meshes[1_m].hidden = {0.5, 0.125};
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsWhenUpdatesAreMadeAndWhatOverlaps) {
  Plan plan = lowered_.plan;
  plan.updates = UpdateOrder::before_norm;
  plan.overlap = Overlap::transfers;
  plan.cluster.overlap_slowdown = 1.25;
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsThePartsOfSumsOfGradients) {
  Plan plan = lowered_.plan;
  plan.sync = SumsForBuckets(plan, GraphUses(lowered_.graph)).in_buckets(find_buckets("parts"));
  ASSERT_FALSE(plan.sync.empty());
  const auto path = written("a.h5", plan);
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_THAT(output_of("h5dump -d /sync/way " + path.string()), HasSubstr("in 2 parts"));
}

TEST_F(PlanFile, HoldsHowOldParametersMayBe) {
  Plan plan = lowered_.plan;
  for (const int staleness : {Plan::kSynchronous, 0, 3}) {
    plan.staleness = staleness;
    EXPECT_EQ(read_plan(written(std::to_string(staleness) + ".h5", plan)), plan);
  }
}

TEST_F(PlanFile, HoldsTheBucketsOfSumsOfGradients) {
  Plan plan = lowered_.plan;
  plan.sync = SumsForBuckets(plan, GraphUses(lowered_.graph)).in_buckets(find_buckets("one"));
  ASSERT_FALSE(plan.sync.empty());
  const auto path = written("a.h5", plan);
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_THAT(output_of("h5dump -d /sync/name " + path.string()),
              HasSubstr(value_of(lowered_.graph, plan.sync.front().sum).name));
  EXPECT_THAT(output_of("h5dump -d /sync/way " + path.string()), HasSubstr("in a bucket"));
  EXPECT_THAT(output_of("h5dump -d /sync/way " + written("b.h5", lowered_.plan).string()),
              AllOf(HasSubstr("all-reduce over 2 devices (axis 0)"), Not(HasSubstr("in a bucket"))));
}

TEST_F(PlanFile, HoldsWhichDeviceUpdatesWhat) {
  Plan plan = lowered_.plan;
  plan.sync = with_owners(plan, GraphUses(lowered_.graph), OwnerRule::parts);
  ASSERT_FALSE(plan.sync.empty());
  const auto path = written("a.h5", plan);
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_THAT(output_of("h5dump -d /sync/way " + path.string()),
              HasSubstr("summed up at 2 owners of 2 devices (axis 0), which update it for all"));
  EXPECT_THAT(output_of("h5dump -d /sync/owners/name " + path.string()),
              HasSubstr(value_of(lowered_.graph, plan.sync.front().sum).name));
  EXPECT_NE(output_of("h5diff " + path.string() + " " + written("b.h5", lowered_.plan).string()), "");
}

TEST_F(PlanFile, HoldsOwnersOfTiedWeights) {
  lowered_ = pinned("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n");
  Plan& plan = lowered_.plan;
  plan.sync = with_owners(plan, GraphUses(lowered_.graph), OwnerRule::even);
  const auto is_made_in_update = [&](const GradientSync& sync) {
    return node_of(lowered_.graph, value_of(lowered_.graph, sync.sum).producer).phase == Phase::update;
  };
  EXPECT_EQ(std::ranges::count_if(plan.sync, is_made_in_update), 1) << "each device adds its terms first";
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsWhatRestsOnTheHost) {
  Plan plan = lowered_.plan;
  plan.on_host = states_of_updates_alone(GraphUses(lowered_.graph));
  plan.cluster.host_bytes_per_s = 1.5e10;
  plan.cluster.host_memory_bytes = std::int64_t{1} << 40;
  plan.prediction.meshes[1_m].memory.host = 4096;
  const auto path = written("a.h5", plan);
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_THAT(output_of("h5dump -d /host/name " + path.string()),
              HasSubstr(value_of(lowered_.graph, plan.on_host.front()).name));
}

TEST_F(PlanFile, HoldsConstraintsAndTheirPrices) {
  Plan plan = lowered_.plan;
  plan.prediction.constraints = {{"ZeRO at most 1", "limits.toml:1", 0.25}, {"1 stage", "limits.toml:2", 0}};
  plan.prediction.unconstrained_s = 0.125;
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsHowFarTheStepMayBeOff) {
  Plan plan = lowered_.plan;
  plan.prediction.step_error_s = 1.5e-6;
  plan.prediction.estimated_share = 0.25;
  EXPECT_EQ(read_plan(written("a.h5", plan)), plan);
}

TEST_F(PlanFile, HoldsWhatStagesRecompute) {
  Plan plan = lowered_.plan;
  plan.stages[1_s].recomputed_layers = 1;
  plan.stages[1_s].recompute_form = RecomputeForm::selective;
  const auto path = written("a.h5", plan);
  EXPECT_EQ(read_plan(path), plan);
  EXPECT_THAT(output_of("h5dump -d /stages/recompute_form " + path.string()),
              HasSubstr("\"full\", \"selective\""));
  plan.stages[1_s].recompute_form = RecomputeForm::offload;
  EXPECT_EQ(read_plan(written("b.h5", plan)), plan);
}

TEST_F(PlanFile, IsTheSameForTheSamePlan) {
  const auto a = written("a.h5", lowered_.plan), b = written("b.h5", lowered_.plan);
  EXPECT_EQ(output_of("h5diff --exclude-path /provenance " + a.string() + " " + b.string()), "exit 0");
}

TEST_F(PlanFile, IsReadByTheToolsOfHdf5) {
  const std::string path = written("a.h5", lowered_.plan).string();
  const std::string listing = output_of("h5ls -r " + path);
  for (const char* dataset :
       {"/stages/mesh", "/nodes/strategy_in_words", "/values/layout", "/transfers/to_mesh",
        "/candidates/verdict", "/prediction/time/compute", "/prediction/memory/arena", "/model/toml"})
    EXPECT_THAT(listing, HasSubstr(dataset));
  EXPECT_THAT(output_of("h5dump -d /stages/end_layer " + path), HasSubstr("(0): 2, 4"));
  EXPECT_THAT(output_of("h5dump -a /prediction/time/compute/units " + path), HasSubstr("\"s\""));
  EXPECT_THAT(output_of("h5dump -a /nodes/strategy/DIMENSION_LIST " + path), HasSubstr("/nodes/name"));
}

TEST_F(PlanFile, IsRefusedWhereItIsNone) {
  const auto path = folder_.path() / "text.h5";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs("no HDF5", file);
  std::fclose(file);
  EXPECT_THAT([&] { read_plan(path); }, testing::ThrowsMessage<Error>(HasSubstr("text.h5")));
  EXPECT_THAT([&] { read_plan(folder_.path() / "none.h5"); },
              testing::ThrowsMessage<Error>(HasSubstr("none.h5")));
}

}  // namespace
}  // namespace alpa
