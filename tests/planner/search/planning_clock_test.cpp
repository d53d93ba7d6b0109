#include "libalpa/planner/search/planning_clock.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class PlanningClocks : public testing::Test {
 protected:
  Log log_{"test", LogLevel::off};
};

TEST_F(PlanningClocks, PrintWhatIsDoneAndHowFarItIs) {
  PlanningClock clock(60, log_);
  clock.begin("meshes priced", 131);
  clock.one_done();
  clock.one_done();
  EXPECT_EQ(clock.where(), "meshes priced, 2 of 131");
  clock.begin("stages put together", 0);
  EXPECT_EQ(clock.where(), "stages put together");
}

TEST_F(PlanningClocks, PrintTheBestPlanAndTheBoundOnceTheyAreKnown) {
  PlanningClock clock(60, log_);
  clock.begin("baselines", 3);
  EXPECT_THAT(clock.line(), StartsWith("baselines, 0 of 3; "));
  clock.found(2);
  clock.found(1.5);
  clock.found(3);
  clock.bounded(1);
  EXPECT_THAT(clock.line(),
              StartsWith("baselines, 0 of 3; best so far 1.50 s; lower bound of what was searched 1.00 s; "));
  EXPECT_THAT(clock.line(), HasSubstr(" left"));
}

TEST_F(PlanningClocks, LeaveOutABoundAboveTheBest) {
  PlanningClock clock(60, log_);
  clock.begin("search", 0);
  clock.found(1.5);
  clock.bounded(2);
  EXPECT_THAT(clock.line(), testing::Not(HasSubstr("lower bound")));
}

TEST_F(PlanningClocks, AreOverWhenAStopIsAskedFor) {
  StopRequest stop;
  PlanningClock clock(3600, log_, &stop);
  EXPECT_FALSE(clock.is_over());
  EXPECT_EQ(clock.end(), "the time limit of 1h00m (--time-limit) was reached");
  stop.ask();
  EXPECT_TRUE(clock.is_over());
  EXPECT_FALSE(clock.is_long_over());  // there is a moment to put a plan together
  EXPECT_EQ(clock.end(), "the search was stopped");
}

TEST_F(PlanningClocks, AreOverWhenTheLimitIsReached) {
  EXPECT_TRUE(PlanningClock(0, log_).is_over());
  EXPECT_FALSE(PlanningClock(0, log_).is_long_over());
  EXPECT_FALSE(PlanningClock(3600, log_).is_over());
}

}  // namespace
}  // namespace alpa
