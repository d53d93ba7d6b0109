// Real images: the handwritten digits that come with scikit-learn (Debian's python3-sklearn), 8 x 8 pixels
// each.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::HasSubstr;

class Digits : public Workplace {};

TEST_F(Digits, AreToldApartByASmallWideResNetOnTwoRanks) {
  const std::string source = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
  if (!std::filesystem::exists(source))
    GTEST_SKIP() << "python3-sklearn, which has the digits, is not installed";
  const CommandResult converted =
      run("alpa-train convert " + source + " --shape 8x8x1 --divide 16 --hold-out 0.2137 --out digits.h5");
  ASSERT_EQ(converted.status, 0) << converted.output;
  make_plan("plan", "--devices 2 --method data-parallel",
            ALPA_SOURCE_DIR "/configs/models/wide-resnet-digits.toml");
  const CommandResult trained =
      run("alpa-train plan.h5 --data digits.h5 --evaluation-data digits-held-out.h5 --evaluate-every 300 "
          "--evaluation-batches 6 --steps 300 --run-dir run --threads 1",
          2);
  ASSERT_EQ(trained.status, 0) << trained.output;
  // All 384 held-out images, six batches of 64, none of which was trained on.
  EXPECT_THAT(converted.output, HasSubstr("384 in 'digits-held-out.h5'"));
  const std::size_t logged = trained.output.find("step 300: held-out loss ");
  ASSERT_NE(logged, std::string::npos) << trained.output;
  EXPECT_GT(std::stod(trained.output.substr(trained.output.find("accuracy ", logged) + 9)), 0.97)
      << trained.output;
}

}  // namespace
}  // namespace alpa
