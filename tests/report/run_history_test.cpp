#include "libalpa/report/run_history.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RunHistories : public testing::Test {
 protected:
  RunHistory read(const std::string& text) const {
    std::ofstream(path()) << text;
    return read_run_history(path());
  }
  std::filesystem::path path() const { return folder_.path() / "metrics.jsonl"; }

 private:
  TemporaryFolder folder_;
};

TEST_F(RunHistories, HaveAColumnForWhatEachStepReports) {
  const RunHistory run = read(
      "{\"step\":1,\"first_of_job\":true,\"loss\":5.5,\"tokens\":64,\"step_s\":0.25,\"evaluation_loss\":null}"
      "\n"
      "{\"step\":2,\"loss\":4.5,\"tokens\":64,\"step_s\":0.5,\"saved_bytes\":4096,\"saved_s\":2,"
      "\"evaluation_loss\":4.25}\n"
      "{\"step\":3,\"first_of_job\":true,\"loss\":null,\"tokens\":64,\"step_s\":0.125}\n");
  EXPECT_THAT(run.step, ElementsAre(1, 2, 3));
  EXPECT_THAT(run.tokens, ElementsAre(64, 64, 64));
  EXPECT_EQ(run.loss[1], 4.5);
  EXPECT_TRUE(std::isnan(run.loss[2]));
  EXPECT_TRUE(std::isnan(run.predicted_step_s[0]));
  EXPECT_TRUE(std::isnan(run.evaluation_loss[0]));
  EXPECT_EQ(run.evaluation_loss[1], 4.25);
  EXPECT_EQ(known_sum(run.saved_bytes) / known_sum(run.saved_s), 2048);
  EXPECT_THAT(run.first_of_job, ElementsAre(1, 3));
  EXPECT_FALSE(run.emulated);
}

// As metrics were before they said with which steps jobs began.
TEST_F(RunHistories, BeginWithAJob) { EXPECT_THAT(read("{\"step\":1}\n").first_of_job, ElementsAre(1)); }

TEST_F(RunHistories, LeaveOutALineThatIsBeingWritten) {
  EXPECT_THAT(read("{\"step\":1}\n{\"step\":2,\"lo").step, ElementsAre(1));
}

TEST_F(RunHistories, NameALineThatIsNoStep) {
  EXPECT_THAT([&] { read("{\"step\":1}\n[3]\n"); },
              ThrowsMessage<Error>(HasSubstr("line 2: expected an object")));
  EXPECT_THAT([&] { read("{\"step\":2}\n{\"step\":2}\n"); }, ThrowsMessage<Error>(HasSubstr("line 2")));
  EXPECT_THAT([&] { read(""); }, ThrowsMessage<Error>(HasSubstr("has no step yet")));
  EXPECT_THAT([] { read_run_history("nowhere/metrics.jsonl"); },
              ThrowsMessage<Error>(HasSubstr("cannot read 'nowhere/metrics.jsonl': No such file")));
}

TEST_F(RunHistories, AreThinnedToMeansAndSums) {
  RunHistory run = read(
      "{\"step\":1,\"loss\":4,\"tokens\":8}\n{\"step\":2,\"loss\":2,\"tokens\":8}\n"
      "{\"step\":3,\"loss\":null,\"tokens\":8}\n{\"step\":4,\"loss\":1,\"tokens\":8}\n{\"step\":5,\"loss\":7,"
      "\"tokens\":8}\n");
  const RunHistory thin = run.thinned(3);
  EXPECT_THAT(thin.step, ElementsAre(2, 4, 5));
  EXPECT_THAT(thin.loss, ElementsAre(3, 1, 7));
  EXPECT_THAT(thin.tokens, ElementsAre(16, 16, 8));
  EXPECT_EQ(run.thinned(5).loss.size(), 5u);
}

}  // namespace
}  // namespace alpa
