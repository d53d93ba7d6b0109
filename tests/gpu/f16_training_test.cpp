// Training in f16 on a GPU, with dynamic loss scaling.
#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/checkpoint/initial_state.h"
#include "libalpa/checkpoint/run_folder.h"
#include "libalpa/trainer/train.h"
#include "tests/h5/temporary_folder.h"
#include "tests/kernels/backends.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;

TinyTraining serial(const std::string& model, Precision precision,
                    UpdateOrder updates = UpdateOrder::after_norm) {
  TinyCase c{model, "serial", 1, 2, "1f1b", Rematerialize::never, precision};
  c.updates = updates;
  return TinyTraining(c);
}

class GpuTrainingInF16 : public testing::TestWithParam<const char*> {};

TEST_P(GpuTrainingInF16, AsF32UpToTheRoundingsOfAStep) {
  constexpr int steps = 4;
  const TinyTraining training = serial(GetParam(), Precision::f16);
  const TinyCurve exact = serial(GetParam(), Precision::f32).run_on_threads(steps);
  const std::unique_ptr<Device> device = kernel_backends().front().make();
  const TinyCurve f16 = training.run(steps, *device, *make_self_communicator());
  EXPECT_EQ(f16.skipped_steps, 0);
  EXPECT_LT(f16.losses.back(), f16.losses.front());
  const double error = rounding_error(training.graph(), DType::f16);
  for (std::size_t step : {0, 1}) {  // from equal states, and after the first update
    EXPECT_NEAR(f16.losses[step], exact.losses[step], error * exact.losses[step]);
    EXPECT_NEAR(f16.norms[step], exact.norms[step], 2 * error * exact.norms[step]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTrainingInF16, testing::Values("gpt", "llama", "bert"),
                         [](const auto& model) { return std::string(model.param); });

/// Runs as alpa-train makes them, in a folder of their own.
class GpuTrainingRunInF16 : public testing::TestWithParam<UpdateOrder> {
 protected:
  std::filesystem::path run_dir(const std::string& name) const { return folder_.path() / name; }

  /// Goes on to that many steps in all.
  void train_to(std::int64_t steps, const std::string& name, double loss_scale,
                std::int64_t loss_scale_steps = 2000) const {
    TrainingOptions options = tiny_.options();
    options.loss_scale = loss_scale;
    options.loss_scale_steps = loss_scale_steps;
    TrainSettings settings;
    settings.data = "synthetic:60";
    settings.run_dir = run_dir(name);
    settings.steps = steps;
    const std::unique_ptr<Device> device = kernel_backends().front().make(), host = make_cpu_device(1);
    const std::unique_ptr<Communicator> data = make_self_communicator(), control = make_self_communicator();
    Log log("test", LogLevel::off);
    StopRequest stop;
    EXPECT_EQ(train(tiny_.plan(), tiny_.graph(), options, settings,
                    {*device, *data, *host, *control, *control}, stop, {}, log),
              0);
  }

  std::filesystem::path checkpoint(const std::string& name, std::int64_t step) const {
    return checkpoint_path(run_dir(name), step);
  }

  std::map<std::string, std::string> tensors(const std::filesystem::path& checkpoint) const {
    const TensorReader file = open_checkpoint(checkpoint);
    std::map<std::string, std::string> bytes;
    for (const auto& [tensor, type] : file.tensors()) {
      bytes[tensor].resize(static_cast<std::size_t>(byte_count(type)));
      file.read_all(tensor, bytes[tensor].data());
    }
    return bytes;
  }

  std::map<std::string, std::string> initial_tensors() const {
    std::map<std::string, std::string> bytes;
    for (const State& state : tiny_.graph().states) {
      const TensorType& type = value_of(tiny_.graph(), state.value).type;
      bytes[state.name].resize(static_cast<std::size_t>(byte_count(type)));
      fill_initial_state(tiny_.graph(), state,
                         {Shape(type.shape.size(), 0), type.shape, 0, element_count(type.shape)},
                         tiny_.options().seed, bytes[state.name].data());
    }
    return bytes;
  }

  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(run_dir(name) / "metrics.jsonl");
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

 private:
  TinyTraining tiny_ = serial("gpt", Precision::f16, GetParam());
  TemporaryFolder folder_;
};

TEST_P(GpuTrainingRunInF16, ChangesNothingWhileGradientsOverflow) {
  train_to(2, "run", 0x1p40);
  EXPECT_EQ(tensors(checkpoint("run", 2)), initial_tensors());
  EXPECT_EQ(verify_checkpoint(checkpoint("run", 2)).loss_scale, (LossScale{0x1p38, 0, 2}));
  const std::vector<std::string> metrics = lines("run");
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_THAT(metrics[1], HasSubstr(R"("gradient_norm":null)"));
  EXPECT_THAT(metrics[1], HasSubstr(R"("loss_scale":549755813888,"skipped_steps":2)"));
}

// From a scale that overflows, and is reached again after every second good step. The run in parts goes on
// after the first of two.
TEST_P(GpuTrainingRunInF16, InPartsEndsAsInOneGo) {
  train_to(7, "whole", 0x1p23, 2);
  train_to(3, "parts", 0x1p23, 2);
  EXPECT_EQ(verify_checkpoint(checkpoint("parts", 3)).loss_scale, (LossScale{0x1p21, 1, 2}));
  train_to(7, "parts", 0x1p23, 2);
  const std::filesystem::path whole = checkpoint("whole", 7), parts = checkpoint("parts", 7);
  EXPECT_EQ(verify_checkpoint(whole).loss_scale, (LossScale{0x1p22, 0, 3}));
  EXPECT_EQ(verify_checkpoint(parts), verify_checkpoint(whole));
  EXPECT_EQ(tensors(parts), tensors(whole));
  EXPECT_NE(tensors(whole), initial_tensors());
}

INSTANTIATE_TEST_SUITE_P(Updates, GpuTrainingRunInF16,
                         testing::Values(UpdateOrder::after_norm, UpdateOrder::before_norm),
                         [](const auto& order) {
                           return order.param == UpdateOrder::after_norm ? "AfterTheNorm" : "BeforeTheNorm";
                         });

}  // namespace
}  // namespace alpa
