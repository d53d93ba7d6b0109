#include "libalpa/trainer/executor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <mutex>

#include "libalpa/base/fingerprint.h"
#include "libalpa/base/philox.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower.h"
#include "tests/support/small_models.h"

namespace alpa {
namespace {

constexpr std::int64_t kBatch = 8, kSequence = 8, kVocabulary = 32;

Cluster small_cluster(int devices) {
  Cluster cluster;
  cluster.devices_per_node = devices;
  cluster.memory_bytes = 1 << 30;
  cluster.memory_bytes_per_s = 1e10;
  cluster.f32_flops_per_s = cluster.bf16_flops_per_s = 1e11;
  cluster.launch_s = 1e-6;
  cluster.within_node = {1e-6, 1e10};
  return cluster;
}

struct Case {
  std::string method;
  int devices = 1, micro_batches = 1;
  std::string schedule = "1f1b";
  std::string rematerialize = "never";
  std::string name() const {
    std::string text = method + "_" + std::to_string(devices) + "ranks_" + std::to_string(micro_batches) + "micro_" + schedule +
                       (rematerialize == "always" ? "_remat" : "");
    for (char& c : text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return text;
  }
};

struct Curve {
  std::vector<double> losses, norms;
};

void initialize(Executor& executor, const Graph& graph) {
  for (const StateTile& tile : executor.state_tiles()) {
    const State& state = graph.states[static_cast<std::size_t>(tile.state)];
    const Shape& whole = value_of(graph, state.value).type.shape;
    std::vector<float> values(static_cast<std::size_t>(element_count(tile.tile.shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int64_t rest = static_cast<std::int64_t>(i), global = 0, stride = 1;
      for (std::size_t d = whole.size(); d-- > 0;) {
        global += (tile.origin[d] + rest % tile.tile.shape[d]) * stride;
        rest /= tile.tile.shape[d];
        stride *= whole[d];
      }
      const Initializer& init = state.initializer;
      values[i] = init.kind == Initializer::Kind::ones     ? 1.0f
                  : init.kind == Initializer::Kind::normal ? static_cast<float>(init.scale) * philox_normal_at(hash64(state.name), 0, static_cast<std::uint64_t>(global))
                                                           : 0.0f;
    }
    executor.write_state(tile.state, values.data());
  }
}

Curve train(const Case& c, int steps) {
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = c.method;
  options.micro_batches = c.micro_batches;
  options.schedule = c.schedule;
  options.rematerialize = c.rematerialize;
  const PlanningModel model{"tiny", "", kBatch, [](std::int64_t samples) { return testing_models::tiny_gpt(samples); }};
  const Plan plan = make_plan(model, CostModel(small_cluster(c.devices)), options, log);
  const Graph graph = testing_models::tiny_gpt(plan.micro_batch_samples);
  const Program program = lower(graph, plan);
  Curve run;
  run_on_threads(plan.devices(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(graph, {&program}, *device, world, 1);
    initialize(executor, graph);
    std::vector<std::int32_t> tokens(kBatch * kSequence), targets(tokens.size());
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<std::int32_t>(philox(5, static_cast<std::uint64_t>(step), i).word[0] % kVocabulary);
        targets[i] = (tokens[i] * 7 + 3) % kVocabulary;
      }
      StepInputs inputs;
      inputs.tokens = tokens;
      inputs.targets = targets;
      inputs.loss_scale = 1.0f / static_cast<float>(tokens.size());
      inputs.step = step;
      inputs.update_scalars[0] = 1e-2f;
      inputs.update_scalars[1] = 1 - std::pow(0.9f, static_cast<float>(step + 1));
      inputs.update_scalars[2] = 1 - std::pow(0.95f, static_cast<float>(step + 1));
      const StepResult result = executor.run(inputs);
      if (rank == 0) {
        run.losses.push_back(result.loss_sum / static_cast<double>(tokens.size()));
        run.norms.push_back(result.gradient_norm);
      }
    }
  });
  return run;
}

class SameTraining : public testing::TestWithParam<Case> {};

// Sums of f32 in another order: a few units in the last place per reduction, amplified by the training steps.
TEST_P(SameTraining, AsSerial) {
  static const Curve serial = train({"serial", 1, 1}, 10);
  const Curve run = train(GetParam(), 10);
  ASSERT_LT(serial.losses.back(), serial.losses.front());
  for (std::size_t i = 0; i < serial.losses.size(); ++i) {
    EXPECT_NEAR(run.losses[i], serial.losses[i], 1e-5 * serial.losses[i]) << "step " << i;
    EXPECT_NEAR(run.norms[i], serial.norms[i], 1e-4 * serial.norms[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, SameTraining,
                         testing::Values(Case{"serial", 1, 4}, Case{"serial", 1, 2, "1f1b", "always"}, Case{"data-parallel", 2, 1},
                                         Case{"data-parallel", 4, 2}, Case{"zero-1", 2, 1}, Case{"zero-2", 2, 2}, Case{"zero-3", 2, 2},
                                         Case{"zero-3", 4, 1}, Case{"sequence", 2, 1}, Case{"sequence", 4, 1},
                                         Case{"inter-only", 2, 4}, Case{"inter-only", 2, 4, "gpipe"}, Case{"inter-only", 4, 4},
                                         Case{"inter-only", 2, 4, "1f1b", "always"}, Case{"intra-only", 4, 1}, Case{"megatron", 4, 4},
                                         Case{"search", 4, 2}),
                         [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
