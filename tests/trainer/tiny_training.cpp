#include "tests/trainer/tiny_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "libalpa/base/philox.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower.h"
#include "libalpa/program/verify.h"
#include "libalpa/trainer/executor.h"
#include "libalpa/trainer/executor_states.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

constexpr std::int64_t kBatch = 8, kSequence = 16, kVocabulary = 64;

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

ModelDefinition tiny_model(const TinyCase& c) {
  const std::filesystem::path source = source_folder();
  ModelDefinition model =
      read_model(source / "tests/data" / ("tiny_" + c.model + ".toml"), {source / "share/blocks"});
  model.training.precision = c.precision;
  return model;
}

Graph tiny_graph(const TinyCase& c, std::int64_t samples) {
  return training_step_graph(tiny_model(c), samples);
}

Plan tiny_plan(const TinyCase& c) {
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.method = c.method;
  options.micro_batches = c.micro_batches;
  options.schedule = c.schedule;
  options.rematerialize = c.rematerialize;
  if (c.method == "mixed") {
    options.method = "auto";
    options.pin = PinnedPlan{"mixed", c.micro_batches, schedule_from_name(c.schedule), {}};
    const int layers = static_cast<int>(tiny_graph(c, kBatch / c.micro_batches).layers.size());
    for (const auto& [first, end] : {std::pair(0, layers / 2), std::pair(layers / 2, layers)})
      options.pin->stages.push_back({first,
                                     end,
                                     {2},
                                     0,
                                     c.micro_batches,
                                     1,
                                     false,
                                     {first == 0 ? AxisRole::data : AxisRole::tensor},
                                     StateSpread::none});
  }
  const PlanningModel model{c.model, "", kBatch,
                            [&](std::int64_t samples) { return tiny_graph(c, samples); }};
  return make_plan(model, CostModel(small_cluster(c.devices)), options, log);
}

}  // namespace

std::string TinyCase::name() const {
  std::string text = model + "_" + method + "_" + std::to_string(devices) + "ranks_" +
                     std::to_string(micro_batches) + "micro_" + schedule +
                     (rematerialize == "always" ? "_remat" : "");
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

TinyTraining::TinyTraining(const TinyCase& c)
    : options_(tiny_model(c).training),
      plan_(tiny_plan(c)),
      graph_(tiny_graph(c, plan_.micro_batch_samples)),
      program_(lower(graph_, plan_)) {
  verify(program_, graph_);
}

TinyCurve TinyTraining::run(int steps, Device& device, Communicator& world) const {
  Executor executor(graph_, {&program_}, device, world, 1);
  EXPECT_EQ(executor.arena_bytes(), program_.stages[static_cast<std::size_t>(executor.stage())].memory.total);
  initialize_states(executor, graph_, 1);
  TinyCurve curve;
  std::vector<std::int32_t> tokens(kBatch * kSequence), targets(tokens.size());
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] =
          static_cast<std::int32_t>(philox(5, static_cast<std::uint64_t>(step), i).word[0] % kVocabulary);
      targets[i] = i % 5 == 0 ? -1 : (tokens[i] * 7 + 3) % kVocabulary;
    }
    const auto count =
        static_cast<float>(std::count_if(targets.begin(), targets.end(), [](int t) { return t >= 0; }));
    StepInputs inputs;
    inputs.tokens = tokens;
    inputs.targets = targets;
    inputs.loss_scale = 1.0f / count;
    inputs.step = step;
    inputs.update_scalars[0] = 3e-3f;
    inputs.update_scalars[1] = 1 - std::pow(0.9f, static_cast<float>(step + 1));
    inputs.update_scalars[2] = 1 - std::pow(0.95f, static_cast<float>(step + 1));
    const StepResult result = executor.run(inputs);
    curve.losses.push_back(result.loss_sum / count);
    curve.norms.push_back(result.gradient_norm);
  }
  return curve;
}

TinyCurve TinyTraining::run_on_threads(int steps) const {
  TinyCurve first;
  alpa::run_on_threads(plan_.devices(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    const TinyCurve curve = run(steps, *device, world);
    if (rank == 0) first = curve;
  });
  return first;
}

}  // namespace alpa
