// Averages of a batch norm's statistics, which training keeps and evaluation uses.
#include <gmock/gmock.h>

#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/runtime/executor.h"
#include "tests/support/small_plans.h"
#include "tests/support/source_folder.h"
#include "tests/trainer/own_samples.h"

namespace alpa {
namespace {

constexpr std::int64_t kSamples = 8, kWidth = 3, kGroupSize = 2;
constexpr double kMomentum = 0.25, kCorrection = 2;

const std::string text = R"(name = "normed"
[dimensions]
width = 3
classes = 4

[training]
batch = 8
group_samples = 2
[input.points]
shape = ["width"]
[input.kinds]
shape = []
below = "classes"
[[layer]]
block = "batch_norm"
name = "norm"
of = "points"
as = "x"
channels = "width"
momentum = 0.25
correction = 2
[[layer]]
block = "classifier"
of = ["x", "kinds"]
as = "loss"
[block.classifier]
parameters = ["width", "classes"]
inputs = ["x", "kinds"]
outputs = ["loss"]
steps = [
  {op = "einsum", equation = "b d, d c -> b c", of = ["x", "weight"], as = "logits"},
  {block = "class_loss", name = "loss", of = ["logits", "kinds"], as = "loss"},
]
weights.weight = {shape = ["width", "classes"], init = {normal = 1}}
)";

float point(int step, std::int64_t sample, std::int64_t c) {
  return static_cast<float>((sample * 7 + c * 3 + step * 5) % 11) * 0.5f;
}

/// The running averages of mean and variance after so many steps, from the points alone.
std::vector<double> expected_averages(int steps) {
  std::vector<double> averages(2 * kWidth, 0.0);
  std::fill(averages.begin() + kWidth, averages.end(), 1.0);
  for (int step = 0; step < steps; ++step)
    for (std::int64_t c = 0; c < kWidth; ++c) {
      double means = 0, variances = 0;
      for (std::int64_t first = 0; first < kSamples; first += kGroupSize) {
        const double a = point(step, first, c), b = point(step, first + 1, c);
        means += (a + b) / 2 / (kSamples / kGroupSize);
        variances += (a - b) * (a - b) / 4 / (kSamples / kGroupSize);
      }
      double &mean = averages[c], &variance = averages[kWidth + c];
      mean += kMomentum * (means - mean);
      variance += kMomentum * (kCorrection * variances - variance);
    }
  return averages;
}

struct Averaged {
  std::vector<double> averages;
  double evaluation_loss = 0, loss = 0;
};

Averaged trained(const std::string& method, int devices, int micro_batches, int steps) {
  const ModelDefinition model = parse_model(text, "normed.toml", {source_folder() / "share/blocks"});
  const auto graph_of = [&](std::int64_t samples) { return training_step_graph(model, samples); };
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = method;
  options.micro_batches = micro_batches;
  const Plan plan = make_plan({"normed", "", kSamples, graph_of},
                              CostModel(testing_models::small_cluster(devices)), options, log);
  const Graph graph = graph_of(plan.micro_batch_samples);
  const Program training = lower(graph, plan), evaluation = lower(graph, plan, Purpose::evaluate);
  Averaged outcome;
  run_on_threads(devices, [&](int rank, Communicator& world) {
    const auto device = make_cpu_device(1);
    Executor executor(graph, {&training, &evaluation}, *device, world, 1);
    initialize_states(executor, graph, 1);
    StepInputs inputs;
    inputs.loss_scale = 0;  // no parameter moves
    inputs.update_scalars.per_micro_batch = 1 / static_cast<float>(micro_batches);
    double loss = 0;
    std::vector<float> points(kSamples * kWidth);
    const std::vector<std::int32_t> kinds{0, 1, 2, 3, 3, 2, 1, 0};
    const std::vector<std::span<const std::byte>> samples{std::as_bytes(std::span(points)),
                                                          std::as_bytes(std::span(kinds))};
    OwnSamples own(executor.samples(), samples);
    inputs.samples = own.spans();
    for (int step = 0; step < steps; ++step) {
      for (std::int64_t i = 0; i < kSamples * kWidth; ++i) points[i] = point(step, i / kWidth, i % kWidth);
      own.pick();
      loss = executor.run(inputs)->loss_sum;
    }
    const double evaluated = executor.run(inputs, 1)->loss_sum;
    if (rank > 0) return;
    outcome.loss = loss;
    outcome.evaluation_loss = evaluated;
    for (const char* name : {"norm.running_mean", "norm.running_variance"})
      for (const StateTile& tile : executor.state_tiles())
        if (graph.states[tile.state].name == name) {
          ASSERT_EQ(tile.tile.shape, (Shape{kWidth}));
          float values[kWidth];
          executor.read_state(tile, values);
          outcome.averages.insert(outcome.averages.end(), values, values + kWidth);
        }
  });
  return outcome;
}

TEST(RunningAverage, FollowsTheStatisticsWhateverThePlan) {
  const std::vector<double> expected = expected_averages(3);
  for (const auto& [method, devices, micro_batches] :
       {std::tuple("serial", 1, 1), {"serial", 1, 4}, {"data-parallel", 2, 1}, {"data-parallel", 2, 2}}) {
    SCOPED_TRACE(std::string(method) + " " + std::to_string(devices) + " " + std::to_string(micro_batches));
    const Averaged outcome = trained(method, devices, micro_batches, 3);
    ASSERT_EQ(outcome.averages.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(outcome.averages[i], expected[i], 1e-6 * (1 + std::abs(expected[i])));  // f32
  }
}

TEST(RunningAverage, IsWhatEvaluationNormalisesBy) {
  const Averaged early = trained("serial", 1, 1, 1), late = trained("serial", 1, 1, 3);
  EXPECT_NE(early.evaluation_loss, early.loss);
  EXPECT_NE(late.evaluation_loss, late.loss);
  EXPECT_NEAR(trained("data-parallel", 2, 2, 3).evaluation_loss, late.evaluation_loss,
              1e-5 * late.evaluation_loss);
}

TEST(RunningAverage, OfAParameterIsRefused) {
  std::string trained_average = text;
  trained_average += R"([block.batch_norm]
parameters = ["channels", "group_samples"]
defaults = {momentum = 0.1, correction = 1}
inputs = ["x"]
outputs = ["y"]
steps = [
  {op = "channel_mean", of = "x", as = "mean", size_b = "group_samples"},
  {op = "channel_variance", of = ["x", "mean"], as = "variance", size_b = "group_samples"},
  {op = "running_statistic", of = ["mean", "average"], as = "mean", momentum = "momentum", correction = "correction"},
  {op = "batch_norm", of = ["x", "mean", "variance", "gain", "bias"], as = "y", size_b = "group_samples", epsilon = 1e-5},
]
[block.batch_norm.weights]
gain = {shape = ["channels"], init = "ones"}
bias = {shape = ["channels"], init = "zeros"}
average = {shape = ["channels"], init = "zeros"}
)";
  EXPECT_THAT(
      [&] {
        training_step_graph(parse_model(trained_average, "normed.toml", {source_folder() / "share/blocks"}),
                            8);
      },
      testing::ThrowsMessage<std::exception>(testing::HasSubstr("norm.average")));
}

}  // namespace
}  // namespace alpa
