// The mean of the weights of checkpoints, as a checkpoint.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "libalpa/base/float_types.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AverageCommand : public Workplace {
 protected:
  /// Checkpoints of steps 1 to 3.
  void train_three(const std::string& model = "") const {
    make_plan("serial", "--method serial", model);
    train("serial", 1, "run", "--steps 3 --checkpoint-every 1 --keep 0");
  }

  CommandResult average(const std::vector<int>& steps, const std::string& out) const {
    std::string files;
    for (const int step : steps) files += checkpoint("run", step).string() + " ";
    return run("alpa-train average " + files + "--out " + out);
  }

  template <class Element>
  static std::vector<Element> values(const std::filesystem::path& file, const std::string& name) {
    const TensorReader tensors = open_checkpoint(file);
    std::vector<Element> values(static_cast<std::size_t>(element_count(tensors.tensors().at(name).shape)));
    tensors.read_all(name, values.data());
    return values;
  }

  void expect_mean(const std::string& name) const {
    const auto one = values<float>(checkpoint("run", 1), name),
               three = values<float>(checkpoint("run", 3), name),
               mean = values<float>(checkpoint("mean", 3), name);
    EXPECT_NE(one, three) << name;
    for (std::size_t i = 0; i < mean.size(); ++i)
      ASSERT_EQ(mean[i], static_cast<float>((static_cast<double>(one[i]) + three[i]) / 2))
          << name << " " << i;
  }
};

TEST_F(AverageCommand, OfACheckpointWithItselfIsIt) {
  train_three();
  const CommandResult result = average({2, 2, 2}, "same");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(difference(checkpoint("run", 2), checkpoint("same", 2)), "");
}

TEST_F(AverageCommand, IsTheMeanOfWeightsWithAllElseOfTheLast) {
  train_three();
  const CommandResult result = average({3, 1}, "mean");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("in 2 checkpoints, all else of"));
  const TensorReader mean = open_checkpoint(checkpoint("mean", 3));
  int moments = 0, parameters = 0;
  for (const auto& [name, type] : mean.tensors()) {
    if (belongs_to_parameter(mean.tensors(), name)) {
      EXPECT_EQ(values<float>(checkpoint("mean", 3), name), values<float>(checkpoint("run", 3), name))
          << name;
      ++moments;
    } else {
      expect_mean(name);
      ++parameters;
    }
  }
  EXPECT_EQ(moments, 2 * parameters);
  EXPECT_EQ(checkpoint_facts(checkpoint("mean", 3)), checkpoint_facts(checkpoint("run", 3)));
}

TEST_F(AverageCommand, RoundsTheMeanOfMasters) {
  train_three(ALPA_SOURCE_DIR "/tests/data/tiny_bf16_sums.toml");
  ASSERT_EQ(average({2, 2}, "same").status, 0);
  EXPECT_EQ(difference(checkpoint("run", 2), checkpoint("same", 2)), "");
  ASSERT_EQ(average({1, 3}, "mean").status, 0);
  const std::string name = "embedding.table", master = name + ".master";
  expect_mean(master);
  std::vector<std::uint16_t> rounded;
  for (const float value : values<float>(checkpoint("mean", 3), master))
    rounded.push_back(to_bfloat16(value).bits);
  EXPECT_EQ(values<std::uint16_t>(checkpoint("mean", 3), name), rounded);
}

TEST_F(AverageCommand, IsEvaluatedGoneOnFromAndVerified) {
  train_three();
  ASSERT_EQ(average({1, 2, 3}, "mean").status, 0);
  EXPECT_EQ(run("alpa-train verify mean").status, 0);
  const CommandResult evaluated =
      run("alpa-train evaluate serial.h5 --data synthetic:64 --batches 2 --run-dir mean");
  EXPECT_EQ(evaluated.status, 0) << evaluated.output;
  train("serial", 1, "further", "--steps 4 --resume mean");
  EXPECT_THAT(numbers("further", "step"), testing::ElementsAre(4));
}

TEST_F(AverageCommand, IsExported) {
  const std::string weights = ALPA_SOURCE_DIR "/tests/reference/gpt2.safetensors",
                    model = ALPA_SOURCE_DIR "/tests/data/small_gpt2.toml";
  ASSERT_EQ(run("alpa-train import " + weights + " " + model + " --out gpt2.h5").status, 0);
  ASSERT_EQ(run("alpa-train average gpt2.h5 gpt2.h5 --out mean").status, 0);
  for (const auto& [from, to] : {std::pair("gpt2.h5", "one"), {"mean/checkpoints/step-00000000.h5", "mean"}})
    ASSERT_EQ(
        run(std::string("alpa-train export ") + from + " --names gpt2 --out " + to + ".safetensors").status,
        0);
  EXPECT_EQ(run("cmp one.safetensors mean.safetensors").status, 0);
}

TEST_F(AverageCommand, RefusesDifferentModelsOneCheckpointAndAFolderThatHasSome) {
  train_three();
  make_plan("moe", "--method serial", ALPA_SOURCE_DIR "/tests/data/tiny_moe.toml");
  train("moe", 1, "other", "--steps 1");
  const CommandResult differ =
      run("alpa-train average run/checkpoints/step-00000001.h5 "
          "other/checkpoints/step-00000001.h5 --out mean");
  EXPECT_EQ(differ.status, 3);
  EXPECT_THAT(differ.output,
              AllOf(HasSubstr("are checkpoints of different models"), HasSubstr("states differ")));
  EXPECT_FALSE(std::filesystem::exists(path("mean")));
  EXPECT_EQ(average({1}, "mean").status, 2);
  const CommandResult into_run = average({1, 2}, "run");
  EXPECT_EQ(into_run.status, 2);
  EXPECT_THAT(into_run.output, HasSubstr("has checkpoints"));
}

}  // namespace
}  // namespace alpa
