#include "libalpa/trainer/executor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libalpa/base/philox.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower.h"
#include "libalpa/program/verify.h"
#include "libalpa/trainer/initial_state.h"

namespace alpa {
namespace {

constexpr std::int64_t kBatch = 8, kSequence = 16, kVocabulary = 64;
constexpr int kSteps = 20;

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
  std::string model;
  std::string method;
  int devices = 1, micro_batches = 1;
  std::string schedule = "1f1b";
  std::string rematerialize = "never";
  std::string name() const {
    std::string text = model + "_" + method + "_" + std::to_string(devices) + "ranks_" + std::to_string(micro_batches) + "micro_" + schedule +
                       (rematerialize == "always" ? "_remat" : "");
    for (char& c : text)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return text;
  }
};

struct Curve {
  std::vector<double> losses, norms;
};

Graph graph_of(const std::string& model, std::int64_t samples) {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return training_step_graph(read_model(source / "tests/data" / ("tiny_" + model + ".toml"), {source / "share/blocks"}), samples);
}

void initialize(Executor& executor, const Graph& graph) {
  for (const StateTile& tile : executor.state_tiles()) {
    std::vector<std::byte> values(static_cast<std::size_t>(byte_count(tile.tile)));
    fill_initial_state(graph, graph.states[static_cast<std::size_t>(tile.state)], tile.origin, tile.tile.shape, 1, values.data());
    executor.write_state(tile.state, values.data());
  }
}

Plan plan_of(const Case& c) {
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = c.method;
  options.micro_batches = c.micro_batches;
  options.schedule = c.schedule;
  options.rematerialize = c.rematerialize;
  if (c.method == "mixed") {
    options.method = "auto";
    options.pin = PinnedPlan{"mixed", c.micro_batches, schedule_from_name(c.schedule), {}};
    const int layers = static_cast<int>(graph_of(c.model, kBatch / c.micro_batches).layers.size());
    for (const auto& [first, end] : {std::pair(0, layers / 2), std::pair(layers / 2, layers)})
      options.pin->stages.push_back({first, end, {2}, 0, c.micro_batches, 1, false, {first == 0 ? AxisRole::data : AxisRole::tensor}, StateSpread::none});
  }
  const PlanningModel model{c.model, "", kBatch, [&](std::int64_t samples) { return graph_of(c.model, samples); }};
  return make_plan(model, CostModel(small_cluster(c.devices)), options, log);
}

Curve train(const Case& c, int steps) {
  const Plan plan = plan_of(c);
  const Graph graph = graph_of(c.model, plan.micro_batch_samples);
  const Program program = lower(graph, plan);
  verify(program, graph);
  Curve run;
  run_on_threads(plan.devices(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(graph, {&program}, *device, world, 1);
    EXPECT_EQ(executor.arena_bytes(), program.stages[static_cast<std::size_t>(executor.stage())].memory.total);
    initialize(executor, graph);
    std::vector<std::int32_t> tokens(kBatch * kSequence), targets(tokens.size());
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<std::int32_t>(philox(5, static_cast<std::uint64_t>(step), i).word[0] % kVocabulary);
        targets[i] = i % 5 == 0 ? -1 : (tokens[i] * 7 + 3) % kVocabulary;
      }
      const auto count = static_cast<float>(std::count_if(targets.begin(), targets.end(), [](int t) { return t >= 0; }));
      StepInputs inputs;
      inputs.tokens = tokens;
      inputs.targets = targets;
      inputs.loss_scale = 1.0f / count;
      inputs.step = step;
      inputs.update_scalars[0] = 3e-3f;
      inputs.update_scalars[1] = 1 - std::pow(0.9f, static_cast<float>(step + 1));
      inputs.update_scalars[2] = 1 - std::pow(0.95f, static_cast<float>(step + 1));
      const StepResult result = executor.run(inputs);
      if (rank == 0) {
        run.losses.push_back(result.loss_sum / count);
        run.norms.push_back(result.gradient_norm);
      }
    }
  });
  return run;
}

class SameTraining : public testing::TestWithParam<Case> {};

// Sums of f32 in another order: a few units in the last place per reduction, amplified by the training steps.
TEST_P(SameTraining, AsSerial) {
  static std::map<std::string, Curve> serial;
  Curve& reference = serial[GetParam().model];
  if (reference.losses.empty()) reference = train({GetParam().model, "serial", 1, 1}, kSteps);
  const Curve run = train(GetParam(), kSteps);
  ASSERT_LT(reference.losses.back(), reference.losses.front());
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(run.losses[i], reference.losses[i], 1e-5 * reference.losses[i]) << "step " << i;
    EXPECT_NEAR(run.norms[i], reference.norms[i], 1e-3 * reference.norms[i]) << "step " << i;
  }
}

std::vector<Case> every_plan() {
  std::vector<Case> cases;
  for (const char* model : {"gpt", "llama", "mlp", "bert"})
    for (const Case& plan : std::vector<Case>{{"", "serial", 1, 4},
                                              {"", "serial", 1, 2, "1f1b", "always"},
                                              {"", "data-parallel", 2, 1},
                                              {"", "data-parallel", 4, 2},
                                              {"", "zero-1", 2, 1},
                                              {"", "zero-2", 2, 2},
                                              {"", "zero-3", 2, 2},
                                              {"", "zero-3", 4, 1},
                                              {"", "tensor", 2, 1},
                                              {"", "sequence", 2, 1},
                                              {"", "sequence", 4, 1},
                                              {"", "inter-only", 2, 4},
                                              {"", "inter-only", 2, 4, "gpipe"},
                                              {"", "inter-only", 2, 4, "1f1b", "always"},
                                              {"", "mixed", 4, 4},
                                              {"", "mixed", 4, 4, "gpipe"},
                                              {"", "intra-only", 4, 1},
                                              {"", "search", 4, 1},
                                              {"", "search", 4, 2}}) {
      cases.push_back(plan);
      cases.back().model = model;
    }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, SameTraining, testing::ValuesIn(every_plan()), [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
