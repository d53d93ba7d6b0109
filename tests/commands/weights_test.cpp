// Weights of others through the commands: into a checkpoint, trained on, out again.
#include <gmock/gmock.h>

#include "libalpa/weights/safetensors_file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Weights : public Workplace {
 protected:
  void expect_runs(const std::string& command) const {
    const CommandResult result = run(command);
    EXPECT_EQ(result.status, 0) << result.output;
  }

  std::string bytes_of(const std::filesystem::path& path, const std::string& name) const {
    SafetensorsReader file(path);
    const StoredTensor& tensor = file.tensors().at(name);
    std::string bytes(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    file.read(tensor, 0, tensor.end - tensor.begin, bytes.data());
    return bytes;
  }

  const std::string model_ = ALPA_SOURCE_DIR "/tests/data/small_gpt2.toml";
  const std::filesystem::path file_ = ALPA_SOURCE_DIR "/tests/reference/gpt2.safetensors";
};

TEST_F(Weights, AreTrainedOnAndComeOutAgain) {
  expect_runs("alpa-train import " + file_.string() + " " + model_ + " --out gpt2.h5");
  expect_runs("alpa-train export gpt2.h5 --names gpt2 --out same.safetensors");
  EXPECT_EQ(bytes_of(path("same.safetensors"), "h.1.attn.c_attn.weight"),
            bytes_of(file_, "h.1.attn.c_attn.weight"));

  make_plan("serial", "--method serial", model_);
  make_plan("data", "--method data-parallel --devices 2", model_);
  train("serial", 1, "serial", "--steps 4 --resume gpt2.h5");
  train("data", 2, "data", "--steps 4 --resume gpt2.h5");
  train("serial", 1, "fresh", "--steps 4");
  for (const char* run_dir : {"serial", "data", "fresh"}) ASSERT_EQ(numbers(run_dir, "loss").size(), 4u);
  // Both start from the file: the first loss is its, not that of drawn weights.
  EXPECT_NEAR(numbers("serial", "loss")[0], numbers("data", "loss")[0], 1e-5);
  EXPECT_GT(std::abs(numbers("serial", "loss")[0] - numbers("fresh", "loss")[0]), 1e-3);

  expect_runs("alpa-train export data/checkpoints/step-00000004.h5 --names gpt2 --out trained.safetensors");
  EXPECT_NE(bytes_of(path("trained.safetensors"), "h.1.attn.c_attn.weight"),
            bytes_of(file_, "h.1.attn.c_attn.weight"));
}

TEST_F(Weights, AreRefusedWithStatus3AndNothingWritten) {
  write("bad.safetensors", "no safetensors file");
  const CommandResult damaged = run("alpa-train import bad.safetensors " + model_ + " --out bad.h5");
  EXPECT_EQ(damaged.status, 3);
  EXPECT_THAT(damaged.output,
              AllOf(HasSubstr("'bad.safetensors' is not a safetensors file"), HasSubstr("try: ")));
  const CommandResult other = run("alpa-train import " + file_.string() + " " + tiny_gpt_ + " --out bad.h5");
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.output, AllOf(HasSubstr("'h.2.ln_1.weight' is missing"), HasSubstr("and 40 more")));
  const CommandResult unnamed = run("alpa-train export bad.safetensors --names gpt2 --out out.safetensors");
  EXPECT_EQ(unnamed.status, 3);
  EXPECT_EQ(run("alpa-train export x.h5 --names gtp2 --out out.safetensors").status, 2);
  expect_runs("alpa-train import " + file_.string() + " " + model_ + " --out gpt2.h5");
  const CommandResult part = run("alpa-train export gpt2.h5 --names bert --out out.safetensors");
  EXPECT_EQ(part.status, 3);
  EXPECT_THAT(part.output, HasSubstr("the model lacks 5 of the weights of BERT"));
  EXPECT_THAT(names_in("."), testing::ElementsAre("bad.safetensors", "gpt2.h5"));
}

}  // namespace
}  // namespace alpa
