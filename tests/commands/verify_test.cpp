// Whether checkpoints are as they were written.
#include <gmock/gmock.h>

#include <filesystem>

#include "libalpa/checkpoint/checkpoint.h"
#include "tests/commands/spoiled_files.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class VerifyCommand : public Workplace {
 protected:
  void SetUp() override {
    make_plan("serial", "--method serial");
    train("serial", 1, "run", "--steps 3 --checkpoint-every 1 --keep 0");
  }

  /// Turns round one bit of the values of a tensor.
  void flip_bit_of_tensor(const std::filesystem::path& file, const std::string& name) const {
    std::string values;
    {
      const TensorReader tensors = open_checkpoint(file);
      values.resize(static_cast<std::size_t>(byte_count(tensors.tensors().at(name))));
      tensors.read_all(name, values.data());
    }
    flip_bit_in(file, values.substr(values.size() / 2, 32));
  }

  std::string line(int step, const std::string& found) const {
    return "run/checkpoints/step-0000000" + std::to_string(step) + ".h5: " + found;
  }
};

TEST_F(VerifyCommand, HasALineForEachGoodCheckpointOfARun) {
  const CommandResult result = run("alpa-train verify run");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const int step : {1, 2, 3})
    EXPECT_THAT(result.output, HasSubstr(line(step, "good, step " + std::to_string(step))));
}

TEST_F(VerifyCommand, NamesTheTensorThatHasAFlippedBit) {
  const std::string damaged = "head.norm.gain";
  flip_bit_of_tensor(checkpoint("run", 2), damaged);
  const CommandResult result = run("alpa-train verify run");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr(line(1, "good")), HasSubstr(line(2, "damaged: ")), HasSubstr(line(3, "good")),
                    HasSubstr("/tensors/" + damaged), HasSubstr("1 of 3 checkpoints damaged")));
  EXPECT_EQ(run("alpa-train verify run/checkpoints/step-00000002.h5").status, 3);
  EXPECT_EQ(run("alpa-train verify run/checkpoints/step-00000001.h5 run/checkpoints/step-00000003.h5").status,
            0);
}

TEST_F(VerifyCommand, FindsFilesThatAreCutRenamedOrNone) {
  cut_in_half(checkpoint("run", 1));
  std::filesystem::rename(checkpoint("run", 3), checkpoint("run", 7));
  const CommandResult result = run("alpa-train verify run");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output, AllOf(HasSubstr(line(1, "damaged: ")), HasSubstr(line(2, "good")),
                                   HasSubstr(line(7, "damaged: ")), HasSubstr("is the checkpoint of step 3"),
                                   HasSubstr("2 of 3 checkpoints damaged")));
  EXPECT_EQ(run("alpa-train verify serial.h5").status, 3) << "a plan";
  const CommandResult nothing = run("alpa-train verify nowhere.h5");
  EXPECT_EQ(nothing.status, 3);
  EXPECT_THAT(nothing.output, HasSubstr("cannot read 'nowhere.h5': No such file"));
  std::filesystem::create_directory(path("empty"));
  EXPECT_THAT(run("alpa-train verify empty").output,
              HasSubstr("there is no checkpoint in 'empty/checkpoints'"));
}

}  // namespace
}  // namespace alpa
