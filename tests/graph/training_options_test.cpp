#include "libalpa/graph/training_options.h"

#include <gmock/gmock.h>

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

TEST(TrainingOptions, AreAllInTheReference) {
  const std::string reference = options_reference<TrainingOptions>();
  for (const char* name : {"batch",
                           "sequence",
                           "group_samples",
                           "objective",
                           "mask_token",
                           "precision",
                           "optimizer",
                           "learning_rate",
                           "beta1",
                           "beta2",
                           "epsilon",
                           "weight_decay",
                           "momentum",
                           "nesterov",
                           "gradient_clip",
                           "schedule",
                           "warmup_steps",
                           "steps",
                           "final_learning_rate",
                           "seed"})
    EXPECT_THAT(reference, HasSubstr(std::string(name) + " = "));
}

}  // namespace
}  // namespace alpa
