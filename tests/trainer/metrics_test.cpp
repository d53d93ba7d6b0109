#include "libalpa/trainer/metrics.h"

#include <gmock/gmock.h>

#include <fstream>
#include <limits>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

StepMetrics step(std::int64_t number) {
  StepMetrics m;
  m.step = number;
  m.loss = 2.5;
  m.gradient_norm = 0.75;
  m.learning_rate = 3e-4;
  m.samples = 16;
  m.tokens = 2048;
  m.step_s = 0.5;
  m.reference.flops = 2e10;
  m.memory_bytes = 3 << 29;
  m.samples_hash = 0x0123456789abcdef;
  m.data_s = 0.25;
  return m;
}

std::string line_of(const StepMetrics& m) {
  JsonObject line;
  return set_metrics(line, m).text();
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The line of a step that was the only one since the last line.
std::string line_for_people(const StepMetrics& m) {
  StepTotals since;
  since.add(m);
  return progress_line(m, since, 1000, 440);
}

TEST(Metrics, AreOneLineOfJsonPerStep) {
  StepMetrics m = step(7);
  EXPECT_EQ(
      line_of(m),
      R"({"step":7,"loss":2.5,"gradient_norm":0.75,"learning_rate":0.0003,"samples":16,)"
      R"("samples_per_s":32,"tokens":2048,)"
      R"("tokens_per_s":4096,"step_s":0.5,"predicted_step_s":null,"data_s":0.25,"flops_per_s":40000000000,)"
      R"("peak_flops_per_s":null,"peak_origin":"unknown","peak_fraction":null,"memory_bytes":1610612736,)"
      R"("process_bytes":null,"samples_hash":"0123456789abcdef","checkpoint_s":null,"evaluation_loss":null})");
  m.reference.predicted_step_s = 0.625;
  m.reference.peak_flops_per_s = 8e10;
  m.reference.peak_origin = "measured";
  m.evaluation = Evaluation{2.75, {}};
  m.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(line_of(m), HasSubstr(R"("step":7,"loss":null)"));
  EXPECT_THAT(line_of(m),
              HasSubstr(R"("peak_flops_per_s":80000000000,"peak_origin":"measured","peak_fraction":0.5)"));
  EXPECT_THAT(line_of(m), HasSubstr(R"("step_s":0.5,"predicted_step_s":0.625)"));
  EXPECT_THAT(line_of(m), HasSubstr(R"("evaluation_loss":2.75)"));
}

TEST(Metrics, OfTheModelStandBesideTheLoss) {
  const std::vector<NamedNumber> numbers{{"accuracy", 0.75}, {"dropped", 12}};
  StepMetrics m = step(7);
  m.of_model = numbers;
  m.evaluation = Evaluation{2.75, {{"accuracy", 0.5}}};
  EXPECT_THAT(line_of(m), HasSubstr(R"("metrics":{"accuracy":0.75,"dropped":12})"));
  EXPECT_THAT(line_of(m), HasSubstr(R"("evaluation_metrics":{"accuracy":0.5})"));
  EXPECT_THAT(
      line_for_people(m),
      HasSubstr("loss 2.5000  accuracy 0.75  dropped 12  evaluation 2.7500  accuracy 0.5  gradient norm"));
}

TEST(Metrics, CountStepsWhoseUpdatesWereMadeAgain) {
  StepMetrics m = step(7);
  EXPECT_THAT(line_of(m), Not(HasSubstr("corrected")));
  m.corrected_steps = 3;
  EXPECT_THAT(line_of(m), HasSubstr(R"("corrected_steps":3,"samples":16)"));
  EXPECT_THAT(line_for_people(m), HasSubstr("learning rate 0.0003  corrected 3  "));
}

TEST(Metrics, OfF16HaveTheLossScale) {
  StepMetrics m = step(7);
  m.loss_scale = 65536;
  m.skipped_steps = 3;
  m.gradient_norm = std::numeric_limits<double>::infinity();
  EXPECT_THAT(line_of(m), HasSubstr(R"("gradient_norm":null,"learning_rate":0.0003,"loss_scale":65536,)"
                                    R"("skipped_steps":3,"samples":16)"));
  EXPECT_THAT(
      line_for_people(m),
      HasSubstr("gradient norm inf  learning rate 0.0003  loss scale 65536  skipped 3  4.10 ktokens/s"));
}

TEST(Metrics, HaveTheCheckpointThatWasSavedMeanwhile) {
  StepMetrics m = step(104);
  EXPECT_THAT(line_of(m), Not(HasSubstr("saved")));
  m.saved = SavedCheckpoint{100, 3 << 29, 4};
  m.checkpoint_s = 0.25;
  EXPECT_THAT(
      line_of(m),
      HasSubstr(
          R"("checkpoint_s":0.25,"saved_step":100,"saved_bytes":1610612736,"saved_s":4,"evaluation_loss")"));
  EXPECT_EQ(m.saved->text(), "1.50 GiB in 4.00 s, 402.65 MB/s");
}

TEST(Metrics, OfAnEmulatedStepHaveNothingThatWouldBeComputed) {
  const std::vector<NamedNumber> numbers{{"accuracy", 0.75}};
  StepMetrics m = step(7);
  m.emulated = true;
  m.loss_scale = 65536;
  m.of_model = numbers;
  EXPECT_THAT(line_of(m), HasSubstr(R"({"step":7,"emulated":true,"loss":null,"gradient_norm":null,)"
                                    R"("learning_rate":0.0003,"samples":16,)"));
  EXPECT_THAT(line_of(m), Not(HasSubstr("accuracy")));
  EXPECT_EQ(line_for_people(m),
            "step 7/1000  emulated in 500.00 ms  4.10 ktokens/s  40.00 GFLOP/s  memory 1.50 GiB  left 7m20s");
}

TEST(Metrics, AreAPlainLineForPeople) {
  StepMetrics m = step(120);
  EXPECT_EQ(
      line_for_people(m),
      "step 120/1000  loss 2.5000  gradient norm 0.75  learning rate 0.0003  4.10 ktokens/s  40.00 GFLOP/s"
      "  memory 1.50 GiB  left 7m20s");
  m.reference.peak_flops_per_s = 1.2e11;
  m.reference.peak_origin = "table";
  m.evaluation = Evaluation{2.75, {}};
  EXPECT_EQ(line_for_people(m),
            "step 120/1000  loss 2.5000  evaluation 2.7500  gradient norm 0.75  learning rate 0.0003  4.10 "
            "ktokens/s"
            "  40.00 GFLOP/s (33.3 % of 120.00 GFLOP/s, table)  memory 1.50 GiB  left 7m20s");
}

TEST(Metrics, HaveTheMemoryOfTheProcessBesideThatOfTheArena) {
  StepMetrics m = step(120);
  m.process_bytes = std::int64_t{7} << 28;
  EXPECT_THAT(line_for_people(m), HasSubstr("  memory 1.50 GiB (process 1.75 GiB)  left 7m20s"));
  EXPECT_THAT(line_of(m), HasSubstr(R"("memory_bytes":1610612736,"process_bytes":1879048192,)"));
}

TEST(Metrics, OnALineForPeopleAreRatesOfAllStepsSinceTheLast) {
  StepTotals since;
  StepMetrics slow = step(118), m = step(120);
  slow.step_s = 2;
  m.reference.peak_flops_per_s = 8e10;
  for (const StepMetrics& each : {slow, step(119), m}) since.add(each);
  EXPECT_THAT(progress_line(m, since, 1000, 440),  // 3 x 2048 tokens in 3 s
              HasSubstr("  2.05 ktokens/s  20.00 GFLOP/s (25.0 % of 80.00 GFLOP/s, unknown)  "));
}

class MetricsOnDisk : public ::testing::Test {
 protected:
  std::string lines(std::int64_t first, std::int64_t last) const {
    std::string text;
    for (std::int64_t s = first; s <= last; ++s) text += line_of(step(s)) + "\n";
    return text;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
  const std::filesystem::path aside_ = folder_.path() / "metrics.set-aside.jsonl";
};

TEST_F(MetricsOnDisk, StepsAreUniqueAfterAResumption) {
  {
    MetricsFile file(path_, 0);
    for (std::int64_t s = 1; s <= 5; ++s) file.add(step(s));
    file.sync();
    EXPECT_EQ(text_of(path_), lines(1, 5));
  }
  MetricsFile resumed(path_, 3);
  EXPECT_EQ(text_of(path_), lines(1, 3));
  EXPECT_EQ(text_of(aside_), lines(4, 5));
  resumed.add(step(4));
  EXPECT_EQ(text_of(path_), lines(1, 4));
}

TEST_F(MetricsOnDisk, AnIncompleteLineOfAKilledRunIsMovedAside) {
  std::ofstream(path_) << lines(1, 2) << "{\"step\":3,\"loss\":2.";
  MetricsFile resumed(path_, 3);
  resumed.add(step(4));
  EXPECT_EQ(text_of(path_), lines(1, 2) + lines(4, 4));
  EXPECT_EQ(text_of(aside_), "{\"step\":3,\"loss\":2.\n");
}

TEST_F(MetricsOnDisk, NothingMovesWhereNothingIsLater) {
  std::ofstream(path_) << lines(1, 3);
  const MetricsFile resumed(path_, 3);
  EXPECT_EQ(text_of(path_), lines(1, 3));
  EXPECT_FALSE(std::filesystem::exists(aside_));
}

TEST_F(MetricsOnDisk, LinesAreWrittenAgainWhereTheFileWasRemoved) {
  std::filesystem::create_directories(folder_.path() / "run");
  const std::filesystem::path path = folder_.path() / "run" / "metrics.jsonl";
  MetricsFile file(path, 0);
  file.add(step(1));
  EXPECT_FALSE(file.restore_if_removed());
  std::filesystem::remove_all(folder_.path() / "run");
  file.add(step(2));
  EXPECT_TRUE(file.restore_if_removed());
  file.add(step(3));
  EXPECT_EQ(text_of(path), lines(1, 3));
}

TEST_F(MetricsOnDisk, AFolderThatIsMissingIsAnInputError) {
  EXPECT_THAT([&] { MetricsFile(folder_.path() / "gone" / "metrics.jsonl", 0); },
              ThrowsMessage<Error>(HasSubstr("gone/metrics.jsonl': No such file")));
}

}  // namespace
}  // namespace alpa
