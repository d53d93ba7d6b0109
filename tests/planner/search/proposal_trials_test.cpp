#include "libalpa/planner/search/proposal_trials.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/base/log.h"
#include "tests/support/small_models.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using testing::HasSubstr;

/// Two stages of two devices each.
class ProposalTrialsTest : public testing::Test {
 protected:
  ProposalTrialsTest() {
    const int layers = static_cast<int>(priced_.graph.layers.size());
    for (const auto& [first, end] : {std::pair{0, layers / 2}, std::pair{layers / 2, layers}})
      proposal_.requests.push_back(
          {.first_layer = first, .end_layer = end, .mesh = {2}, .micro_batches = 4, .in_flight = 1});
    priced_.book.price(
        {{2}}, 1, [] { return false; }, [] {});
  }
  ProposalTrial try_out(Proposal proposal, const Patience& patience) const {
    return trials_.try_out(priced_, std::move(proposal), "test", "1f1b", patience, 1);
  }
  static double slowest_s(const Proposal& proposal) {
    return std::ranges::max(proposal.solutions, {}, &StageSolution::step_s).step_s;
  }

  const PlanningModel model_ = testing_models::small_model();
  const CostModel costs_{testing_models::small_cluster(4)};
  const PlannerOptions options_;
  Log log_{"test", LogLevel::off};
  const PlanningClock clock_{1e6, log_};
  PricedGraph priced_{model_.graph(2), costs_, {}};
  const ProposalTrials trials_{model_, costs_, options_, clock_};
  Proposal proposal_;
};

TEST_F(ProposalTrialsTest, SolvesWhatIsNotSolvedAndSimulatesIt) {
  const ProposalTrial trial = try_out(proposal_, {});
  ASSERT_TRUE(trial.plan) << trial.failure;
  EXPECT_EQ(trial.plan->stages.size(), 2u);
  EXPECT_EQ(trial.plan->schedule, "1f1b");
  EXPECT_GE(trial.plan->prediction.step_s, slowest_s(trial.proposal));
  EXPECT_LE(trial.plan->prediction.lower_bound_s, trial.plan->prediction.step_s);
}

TEST_F(ProposalTrialsTest, EndWhereAStageTakesLongerThanThereIsPatience) {
  const ProposalTrial known = try_out(proposal_, {});
  ASSERT_TRUE(known.plan) << known.failure;
  const double slowest_s = this->slowest_s(known.proposal);
  const auto with_solved_stages = [&](double stage_s) {
    Proposal solved = known.proposal;
    for (StageSolution& solution : solved.solutions) solution.is_solved = true;
    return try_out(solved, {.stage_s = stage_s});
  };
  EXPECT_TRUE(with_solved_stages(1.01 * slowest_s).plan);
  for (const ProposalTrial& trial :
       {with_solved_stages(slowest_s), try_out(proposal_, {.stage_s = 0.9 * slowest_s})}) {
    EXPECT_FALSE(trial.plan);
    EXPECT_TRUE(trial.is_too_slow);
    EXPECT_THAT(trial.failure, HasSubstr("a step"));
  }
}

}  // namespace
}  // namespace alpa
