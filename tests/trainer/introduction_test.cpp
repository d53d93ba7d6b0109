#include "libalpa/trainer/introduction.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/model/model.h"
#include "tests/h5/temporary_folder.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A run of 20 steps of 8 samples of 16 tokens on a text of so many bytes.
class Introduction : public ::testing::Test {
 protected:
  RunFacts on_text_of(int bytes) {
    std::ofstream(folder_.path() / "text") << std::string(static_cast<std::size_t>(bytes), '\1');
    data_ = open_training_data((folder_.path() / "text").string(), training_.graph(), options_, 0);
    return {training_.plan(), 1000, "CPU", 4096, data_, nullptr, options_, 20};
  }

  TemporaryFolder folder_;
  TinyTraining training_{{"gpt", "serial"}};
  TrainingOptions options_ = training_.options();
  TrainingData data_;
};

TEST_F(Introduction, SaysHowOftenTheDataIsGoneThrough) {
  const RunFacts run = on_text_of(16 * 40 + 1);
  EXPECT_THAT(introduction(run)[1], HasSubstr("40 windows to train on: 4 epochs in 20 steps"));
  EXPECT_THAT(first_warnings(run, 0), IsEmpty());
}

TEST_F(Introduction, WarnsOfDataThatIsLessThanABatch) {
  EXPECT_THAT(first_warnings(on_text_of(16 * 3 + 1), 0),
              ElementsAre("a step takes 8 samples, of which there are 3 to train on: it takes some again"));
}

TEST_F(Introduction, SaysHowTheLearningRateGoes) {
  options_.learning_rate = 1e-3;
  options_.schedule = LearningRateSchedule::constant;
  EXPECT_EQ(introduction(on_text_of(1000))[2], "learning rate: 0.001 at every step");
}

}  // namespace
}  // namespace alpa
