// Plans and the machines they are trained on.
#include <gmock/gmock.h>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class PlanMachines : public Workplace {
 protected:
  std::string output_of(const std::string& command, int ranks) const {
    const CommandResult result = run(command, ranks);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  }
};

TEST_F(PlanMachines, ThatWereMeasuredAreKnownAgain) {
  output_of(
      "alpa-profile " + tiny_gpt_ +
          " --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --micro-batch-samples 4 --out profile.h5",
      2);
  output_of("alpa-plan " + tiny_gpt_ + " --profile profile.h5 --method data-parallel --out plan.h5", 1);
  EXPECT_THAT(output_of(training("plan", "run", "--steps 2"), 2),
              AllOf(HasSubstr("%"), Not(HasSubstr("another machine"))));
  EXPECT_THAT(texts("run", "peak_origin"), Each("measured"));
  write("wider.toml", "nodes = 1\ndevices_per_node = 4\n");
  output_of("alpa-plan " + tiny_gpt_ + " --profile profile.h5 --cluster wider.toml --out wider.h5", 1);
  EXPECT_THAT(output_of(training("wider", "new", "--dry-run"), 4), Not(HasSubstr("another machine")));
}

TEST_F(PlanMachines, OfAnotherKindInAClusterFileGiveNoShareOfTheirPeak) {
  output_of("alpa-plan " + tiny_gpt_ +
                " --cluster " ALPA_SOURCE_DIR
                "/configs/clusters/p3.16xlarge-8.toml --devices 2 --method data-parallel --out plan.h5",
            1);
  const std::string output = output_of(training("plan", "run", "--steps 2"), 2);
  EXPECT_THAT(output,
              AllOf(HasSubstr("predictions are for another machine: p3.16xlarge-8"), Not(HasSubstr("%"))));
  EXPECT_EQ(output.find("another machine"), output.rfind("another machine"));
  EXPECT_THAT(texts("run", "peak_origin"), Each("unknown"));
}

}  // namespace
}  // namespace alpa
