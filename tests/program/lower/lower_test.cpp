#include "libalpa/program/lower/lower.h"

#include <gtest/gtest.h>

#include "libalpa/program/text.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

TEST(SetMicroBatches, MakesTheProgramThatIsLoweredWithSoMany) {
  for (const std::string& schedule : schedule_names(1)) {
    if (schedule == "gpipe")
      continue;  // has all micro-batches in flight, so that their number is its memory's
    Lowered lowered = four_stages(schedule);
    lowered.plan.micro_batches = 200;
    Program program = lower(lowered.graph, lowered.plan);
    for (const int micro_batches : {40, 24, 200}) {
      set_micro_batches(program, lowered.plan, micro_batches);
      Plan plan = lowered.plan;
      plan.micro_batches = micro_batches;
      EXPECT_EQ(program_text(program, lowered.graph), program_text(lower(lowered.graph, plan), lowered.graph))
          << schedule << ", " << micro_batches;
    }
  }
}

}  // namespace
}  // namespace alpa
