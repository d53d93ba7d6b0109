#include "libalpa/graph/training_options.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TrainingOptions read(const std::string& text) {
  TomlDocument document = TomlDocument::parse("[training]\n" + text, "m.toml");
  TrainingOptions options;
  read_options(document.root().table("training"), options);
  document.finish();
  return options;
}

TEST(TrainingOptions, ReadBackFromTheirText) {
  TrainingOptions options;
  options.batch = 12;
  options.group_samples = 3;
  options.precision = Precision::bf16;
  options.objective = Objective::masked;
  options.mask_token = 103;
  options.optimizer = OptimizerKind::sgd;
  options.nesterov = true;
  options.schedule = LearningRateSchedule::linear;
  options.learning_rate = 1.0 / 3;
  EXPECT_EQ(read(options_text(options)), options);
}

TEST(TrainingOptions, HaveDefaultsForEveryKey) { EXPECT_EQ(read(""), TrainingOptions{}); }

TEST(TrainingOptions, OutOfRangeAreRefusedTogether) {
  EXPECT_THAT([] { read("batch = 0\nbeta1 = 1.0\nschedule = \"cosin\"\ngradient_clip = -1"); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("m.toml:2:9: 'training.batch'"), HasSubstr("m.toml:3:9: 'training.beta1'"),
                        HasSubstr("did you mean 'cosine'?"), HasSubstr("'training.gradient_clip'"))));
}

TEST(TrainingOptions, AreNumbersThat32BitsAndARunOfAnyLengthHold) {
  for (const char* line :
       {"epsilon = -1", "epsilon = 1e-300", "beta1 = 0.99999999999", "learning_rate = 1e300",
        "weight_decay = inf", "gradient_clip = 1e39", "steps = 9223372036854775807",
        "warmup_steps = 9223372036854775807", "batch = 4294967296", "mask_token = 2147483648"})
    EXPECT_THAT([&] { read(line); }, ThrowsMessage<Error>(HasSubstr("m.toml:2:"))) << line;
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// With ALPA_REGENERATE set in the environment, `test_graph --gtest_filter=TrainingOptions.*` writes the file
// anew.
TEST(TrainingOptions, AreAllInTheReferenceForUsers) {
  const std::filesystem::path file = std::filesystem::path(ALPA_SOURCE_DIR) / "share/training.md";
  const std::string text = content(file), fence = "```\n";
  const std::size_t begin = text.find(fence) + fence.size(), end = text.rfind(fence);
  ASSERT_LE(begin, end) << file;
  const std::string expected =
      text.substr(0, begin) + options_reference<TrainingOptions>() + text.substr(end);
  if (std::getenv("ALPA_REGENERATE")) std::ofstream(file) << expected;
  EXPECT_EQ(content(file), expected) << "ALPA_REGENERATE=1 and this test write it again";
}

}  // namespace
}  // namespace alpa
