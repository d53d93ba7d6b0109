#include "libalpa/report/step_picture.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/report/plan_page.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

StepPicture picture_of(const Lowered& lowered, int most_bars = 4000) {
  return step_picture(lowered.plan, lowered.graph, CostModel(small_cluster(4)), most_bars);
}

TEST(StepPicture, HasABarForEachRunOfASegment) {
  const StepPicture picture = picture_of(two_stages_of_two(4));
  EXPECT_EQ(picture.micro_batches, 4);
  for (const StepPicture::OfMesh& mesh : picture.meshes) {
    EXPECT_EQ(mesh.bars.size(), 4u + 4u + 1u);  // forwards, backwards, the update
    for (const RunBar& bar : mesh.bars) {
      EXPECT_LE(bar.start_s, bar.end_s);
      EXPECT_LE(bar.end_s, picture.step_s);
    }
  }
}

TEST(StepPicture, OfAWholeStepEndsWithIt) {
  const Lowered lowered = two_stages_of_two(4);
  EXPECT_EQ(picture_of(lowered).step_s, lowered.plan.prediction.step_s);
}

TEST(StepPicture, LeavesSomeOfTheSteadyStateOut) {
  const StepPicture picture =
      picture_of(two_stages_of_two(8), 12);  // 2 stages with 3 forwards and 3 backwards
  EXPECT_EQ(picture.micro_batches, 3);
}

TEST(StepPicture, HoldsAtMostWhatThePlanPromisesAndOnlyWhatStaysAtTheEnds) {
  const Lowered lowered = two_stages_of_two(4);
  const StepPicture picture = picture_of(lowered);
  for (const MeshIndex m : picture.meshes.indices()) {
    const MemoryUse& use = lowered.plan.prediction.meshes[m].memory;
    std::int64_t most = 0;
    for (const MemoryStep& step : picture.meshes[m].memory) most = std::max(most, step.bytes);
    EXPECT_EQ(most, use.total);
    EXPECT_EQ(picture.meshes[m].memory.back().bytes, use.total - use.activations);
  }
}

TEST(PlanPage, PutsTheDataIntoTheSkeletonAndNoTagIntoTheData) {
  const Lowered lowered = two_stages_of_two();
  const PageEntry entry{"</script>.h5", plan_facts(lowered.plan, lowered.graph), picture_of(lowered), {}, ""};
  const std::string page = plan_page("<data>{{data}}</data>", {entry});
  EXPECT_THAT(page, testing::StartsWith("<data>{\"plans\":[{\"title\":\"\\u003c/script>.h5\""));
  EXPECT_EQ(page.find('<', 6), page.rfind("</data>"));
  EXPECT_THROW(plan_page("<data></data>", {entry}), Error);
}

}  // namespace
}  // namespace alpa
