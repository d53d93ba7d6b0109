#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/small_plans.h"

// A value that passes stages by: in 1F1B its ends are several micro-batches apart, forward and back.
namespace alpa {
namespace {

using namespace testing_models;

TEST(SkipConnection, ReachesAStageThatIsNotTheNextOne) {
  for (const PipelineSchedule& schedule : schedules()) {
    const Lowered lowered = four_stages(schedule.name);
    EXPECT_NO_THROW(verify(lowered.program)) << schedule.name;
  }
}

TEST(SkipConnection, DeadlocksIn1F1BWithoutMemoryForEachMessage) {
  Lowered lowered = four_stages("1f1b");
  int shortened = 0;
  for (MeshProgram& mesh : lowered.program.meshes)
    for (Buffer& buffer : mesh.buffers)
      if (buffer.name == "sent pieces") {
        shortened += buffer.slots > 1;
        buffer.slots = 1;
      }
  EXPECT_EQ(shortened, 2);  // from the first to the last stage, and back
  EXPECT_THAT([&] { verify(lowered.program); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("waits for ever")));
}

}  // namespace
}  // namespace alpa
