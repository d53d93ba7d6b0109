// A model whose blocks are defined in its own file is planned and trained like any other.
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

class OwnBlock : public Workplace {};

TEST_F(OwnBlock, LearnsRealTextOnTwoRanks) {
  make_plan("plan", "--devices 2", ALPA_SOURCE_DIR "/configs/models/example-own-block.toml");
  const CommandResult trained =
      run("alpa-train plan.h5 --data " ALPA_SOURCE_DIR "/share/text/genesis.txt --steps 30 --run-dir run", 2);
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::vector<double> losses = numbers("run", "loss");
  ASSERT_EQ(losses.size(), 30u);
  // From nearly ln 256, where all bytes are alike, to half of it; sums in another order change that little.
  EXPECT_LT(losses.back(), 0.7 * losses.front());
}

}  // namespace
}  // namespace alpa
