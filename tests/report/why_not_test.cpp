#include "libalpa/report/why_not.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

ComparedPlan compared(const std::string& name, const Lowered& lowered, const Cluster& cluster) {
  return {name, "split", lowered.plan.micro_batches,
          price_step(lowered.plan, lowered.program, CostModel(cluster))};
}

PlanDifference difference(const Lowered& plan, const Lowered& other,
                          const Cluster& cluster = small_cluster(4)) {
  return {compared("plan.h5", plan, cluster), compared("other.h5", other, cluster)};
}

TEST(WhyNot, HasTermsThatAddUpToTheDifferenceOfTheSteps) {
  const std::vector<Lowered> plans{two_stages_of_two(4), two_stages_of_two(2), ring_of_four()};
  for (const Lowered& plan : plans)
    for (const Lowered& other : plans) {
      const PlanDifference d = difference(plan, other);
      double sum_s = 0, last_s = infinity;
      for (const TermDifference& t : d.terms()) {
        sum_s += t.more_s;
        EXPECT_LE(std::abs(t.more_s), last_s);
        last_s = std::abs(t.more_s);
      }
      const double expected_s = other.plan.prediction.step_s - plan.plan.prediction.step_s;
      EXPECT_NEAR(sum_s, expected_s, 1e-9 * plan.plan.prediction.step_s);  // rounding of sums
    }
}

TEST(WhyNot, NamesInWordsWhatTheSlowerPlanLosesTheMostWith) {
  const PlanDifference d = difference(ring_of_four(), two_stages_of_two(2));
  const bool is_slower = d.other.step.step_s > d.plan.step.step_s;
  EXPECT_THAT(verdict(d), StartsWith(is_slower ? "other.h5 is slower: " : "other.h5 is faster: "));
  for (const TermDifference& t : d.terms())
    if ((t.more_s > 0) == is_slower) {
      EXPECT_THAT(verdict(d), HasSubstr(std::string("the most by ") + step_term_name(t.term) + " ("));
      break;
    }
  EXPECT_THAT(verdict(difference(ring_of_four(), ring_of_four())), StartsWith("other.h5 takes as long: "));
}

TEST(WhyNot, SaysWhatAPlanThatDoesNotFitLacks) {
  const Lowered plan = two_stages_of_two(4), other = ring_of_four();
  Cluster cluster = small_cluster(4);
  cluster.memory_bytes = other.program.meshes[MeshIndex(0)].memory.total - (3 << 10);
  const PlanDifference d = difference(plan, other, cluster);
  EXPECT_EQ(d.other.step.spare_bytes(), -(3 << 10));
  EXPECT_THAT(verdict(d), AllOf(StartsWith("other.h5 does not fit: stage 0 needs "),
                                HasSubstr("on each device, 3.00 KiB more than there are; otherwise it is ")));
}

TEST(WhyNot, PutsTermsMemoryAndStagesSideBySide) {
  EXPECT_THAT(why_not_text(difference(two_stages_of_two(4), ring_of_four())),
              AllOf(HasSubstr("\nstep, mean over devices "), HasSubstr("\nmemory, fullest device "),
                    HasSubstr("\nplan.h5: split, 4 micro-batches\nstage  forward "),
                    HasSubstr("\nother.h5: split, 1 micro-batch\nstage  forward ")));
}

TEST(WhyNot, GivesTheSameToPrograms) {
  const PlanDifference d = difference(two_stages_of_two(4), ring_of_four());
  const nlohmann::json json = nlohmann::json::parse(why_not_json(d).text());
  EXPECT_EQ(json["verdict"], verdict(d));
  EXPECT_EQ(json["step_more_s"], d.other.step.step_s - d.plan.step.step_s);
  EXPECT_EQ(json["differences"].size(), d.terms().size());
  EXPECT_EQ(json["other"]["mean"]["shift_s"], d.other.step.mean[StepTerm::shift]);
}

}  // namespace
}  // namespace alpa
