#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/verify.h"
#include "tests/support/small_plans.h"

// A value that passes stages by: in 1F1B its ends are several micro-batches apart, forward and back.
namespace alpa {
namespace {

using namespace testing_models;

TEST(SkipConnection, ReachesAStageThatIsNotTheNextOne) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Lowered lowered = four_stages(schedule);
    EXPECT_NO_THROW(verify(lowered.program, lowered.graph)) << schedule;
  }
}

TEST(SkipConnection, DeadlocksIn1F1BWithoutMemoryForEachMessage) {
  Lowered lowered = four_stages("1f1b");
  int shortened = 0;
  for (StageProgram& stage : lowered.program.stages)
    for (std::vector<Instruction>& segment : stage.segments)
      for (Instruction& instruction : segment)
        if (auto* send = std::get_if<Send>(&instruction)) {
          shortened += send->turns == 8;
          send->turns = 1;
        }
  EXPECT_EQ(shortened, 8);  // from stage to stage, from the first to the last, and back
  EXPECT_THAT([&] { verify(lowered.program, lowered.graph); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("waits for ever")));
}

}  // namespace
}  // namespace alpa
