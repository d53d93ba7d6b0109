#include "libalpa/report/what_if.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;

std::vector<ChangedStep> asked(const Lowered& lowered, const std::vector<ClusterChange>& changes,
                               const Cluster& cluster = small_cluster(4)) {
  return what_if(lowered.plan, lowered.graph, CostModel(cluster), changes);
}

Lowered on_one_device() { return pinned("[[stage]]\nlayers = 4\nmesh = [1]\naxes = []\n"); }

TEST(WhatIf, NothingChangesIsThePlansOwnPrediction) {
  const Lowered lowered = two_stages_of_two(4);
  const std::vector<ChangedStep> steps = asked(lowered, {{}});
  ASSERT_EQ(steps.size(), 2u);
  for (const ChangedStep& step : steps) {
    EXPECT_EQ(step.step_s, lowered.plan.prediction.step_s);
    EXPECT_EQ(step.cluster, lowered.plan.cluster);
    for (const MeshIndex m : step.terms.indices())
      EXPECT_EQ(step.terms[m][StepTerm::waiting], lowered.plan.prediction.meshes[m].idle_s);
  }
}

TEST(WhatIf, DevicesAreTwiceAsFastAPlanWithoutCommunicationTakesHalfAsLong) {
  const std::vector<ChangedStep> steps = asked(on_one_device(), {{.compute = 2}});
  EXPECT_EQ(steps[1].step_s, steps[0].step_s / 2);  // powers of two round alike
  EXPECT_EQ(steps[1].terms[0_m][StepTerm::forward], steps[0].terms[0_m][StepTerm::forward] / 2);
}

TEST(WhatIf, LinksAreTwiceAsFastAllReducesTakeHalfAsLong) {
  Cluster cluster = small_cluster(4);
  cluster.within_node.latency_s = 0;  // latencies stay
  const std::vector<ChangedStep> steps = asked(two_stages_of_two(4), {{.within_nodes = 2}}, cluster);
  const StepTerms &before = steps[0].terms[1_m], &after = steps[1].terms[1_m];
  EXPECT_EQ(after[StepTerm::all_reduce], before[StepTerm::all_reduce] / 2);
  EXPECT_EQ(after[StepTerm::forward], before[StepTerm::forward]);
}

TEST(WhatIf, LinksBetweenNodesChangeNothingWithinOne) {
  const std::vector<ChangedStep> steps = asked(two_stages_of_two(4), {{.between_nodes = 0.5}});
  EXPECT_EQ(steps[1].step_s, steps[0].step_s);
}

TEST(WhatIf, MemoryChangesTheTimeOfNothingButWhetherItFits) {
  const Lowered lowered = two_stages_of_two(4);
  std::int64_t fullest = 0;
  for (const MeshPrediction& mesh : lowered.plan.prediction.meshes)
    fullest = std::max(fullest, mesh.memory.total);
  const double factor = static_cast<double>(fullest) / (1 << 30) / 2;  // half of it
  const std::vector<ChangedStep> steps = asked(lowered, {{.memory = 2}, {.memory = factor}});
  EXPECT_EQ(steps[1].step_s, steps[0].step_s);
  EXPECT_EQ(steps[1].spare_bytes(), (std::int64_t{2} << 30) - fullest);
  EXPECT_EQ(steps[2].step_s, steps[0].step_s);
  EXPECT_EQ(steps[2].spare_bytes(), std::llround(static_cast<double>(fullest) / 2) - fullest);
  EXPECT_THAT(what_if_text({steps[0], steps[2]}), HasSubstr(" too little: does not fit\n"));
}

TEST(WhatIf, AnotherDeviceHasItsOwnFiguresAndTheOldLinks) {
  const std::vector<ChangedStep> steps = asked(two_stages_of_two(4), {{.device = "H100"}});
  EXPECT_EQ(steps[1].cluster.device, "NVIDIA H100 SXM 80 GB");
  EXPECT_EQ(steps[1].cluster.within_node, steps[0].cluster.within_node);
  // Work this small is launches, which take 4 us in place of 1.
  EXPECT_GT(steps[1].terms[0_m][StepTerm::forward], steps[0].terms[0_m][StepTerm::forward]);
}

TEST(WhatIfText, OfOneChangeShowsEachStageBeforeAndAfter) {
  const Lowered lowered = two_stages_of_two(4);
  const std::string text = what_if_text(asked(lowered, {{.compute = 2}}));
  EXPECT_THAT(text, testing::MatchesRegex("with        compute x2\n"
                                          "step        [0-9.]+ [mu]s -> [0-9.]+ [mu]s \\(-[0-9.]+ %\\)\n"
                                          "binds       [^\n]*\n"
                                          "memory      [^\n]* of 1.00 GiB, [^\n]* left\n"
                                          "\n"
                                          "stage  compute +collectives +transfers +update +waiting\n"
                                          "0      [0-9.]+ [mu]s -> [^\n]*\n"
                                          "1      [0-9.]+ [mu]s -> [^\n]*\n"));
}

TEST(WhatIfText, OfSeveralChangesHasALineForEach) {
  const Lowered lowered = two_stages_of_two(4);
  const std::vector<ChangedStep> steps = asked(lowered, standard_changes());
  const std::string text = what_if_text(steps);
  EXPECT_EQ(std::ranges::count(text, '\n'), 7);  // titles, as it is, five changes
  for (const ChangedStep& step : steps) EXPECT_THAT(text, HasSubstr("\n" + change_text(step.change) + " "));
}

TEST(WhatIfJson, HasTheSameFiguresByName) {
  const Lowered lowered = two_stages_of_two(4);
  const std::vector<ChangedStep> steps = asked(lowered, {{.compute = 2}});
  const nlohmann::json rows = nlohmann::json::parse(what_if_json(steps).text());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["with"], "compute x2");
  EXPECT_EQ(rows[1]["step_s"], steps[1].step_s);
  EXPECT_EQ(rows[1]["meshes"][1]["stages"], nlohmann::json({1}));
  EXPECT_EQ(rows[1]["meshes"][1]["terms"]["all_reduce_s"], steps[1].terms[1_m][StepTerm::all_reduce]);
}

}  // namespace
}  // namespace alpa
