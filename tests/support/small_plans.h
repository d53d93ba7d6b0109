#pragma once
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/lower/lower.h"
#include "tests/support/shared_meshes.h"
#include "tests/support/small_models.h"

namespace alpa::testing_models {

inline Cluster small_cluster(int devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.device = "CPU";
  cluster.devices_per_node = devices;
  cluster.memory_bytes = 1 << 30;
  cluster.memory_bytes_per_s = 1e10;
  cluster.f32_flops_per_s = 1e11;
  cluster.bf16_flops_per_s = 2e11;
  cluster.launch_s = 1e-6;
  cluster.within_node = {1e-6, 1e10};
  cluster.between_nodes = {1e-5, 1e9};
  return cluster;
}

/// A plan with its graph and program.
struct Lowered {
  Plan plan;
  Graph graph;
  Program program;
};

/// The first segment of that kind.
template <class Mesh>
auto& segment_of_kind(Mesh& mesh, SegmentKind kind) {
  return *std::ranges::find_if(mesh.segments, [&](const Segment& s) { return s.kind == kind; });
}

/// The tiny GPT, a batch of 8 as it is planned.
inline PlanningModel small_model(int blocks = 2) {
  return {"tiny", "", 8, [blocks](std::int64_t samples) { return tiny_gpt(samples, blocks); }};
}

/// make_plan() with a log that nobody reads.
inline Plan plan_quietly(const PlanningModel& model, const Cluster& cluster,
                         const PlannerOptions& options = {}) {
  Log log("test", LogLevel::off);
  return make_plan(model, CostModel(cluster), options, log);
}

/// Options of plans whose sums of gradients are added up one by one.
inline PlannerOptions without_buckets(PlannerOptions options = {}) {
  options.sync = "each";
  return options;
}

/// A pinned plan of the tiny GPT with two blocks (layers: embedding, block.0, block.1, head) for a batch
/// of 8.
inline Lowered pinned(const std::string& pin, const Cluster& cluster = small_cluster(4),
                      PlannerOptions options = without_buckets()) {
  options.pin = parse_pin(pin, "pin");
  const std::int64_t samples = 8 / options.pin->micro_batches;
  Lowered lowered;
  lowered.plan = plan_quietly(small_model(), cluster, options);
  lowered.graph = tiny_gpt(samples);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// Two stages of two devices: the first split by samples, the second by columns and rows of weights
/// (Megatron).
inline Lowered two_stages_of_two(int micro_batches = 4, const std::string& schedule = "1f1b") {
  return pinned("micro_batches = " + std::to_string(micro_batches) + "\nschedule = \"" + schedule + "\"" + R"(
[[stage]]
layers = 2
mesh = [2]
axes = ["data"]
[[stage]]
layers = 2
mesh = [2]
axes = ["tensor"]
)");
}

/// One stage of four devices with a quarter of the sequence each; keys and values go round.
inline Lowered ring_of_four() {
  return pinned(R"(
[[stage]]
layers = 4
mesh = [4]
axes = ["ring"]
)");
}

/// Eight features of `x` made of eight, under a parameter of that name.
inline ValueIndex linear(GraphBuilder& g, ValueIndex x, const std::string& name) {
  const ValueIndex weight = g.state(name, {DType::f32, {8, 8}}, {Initializer::Kind::normal, 0.1}, true);
  return g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}});
}

/// Four layers, of which the last takes the result of the first too.
inline Graph with_skip_connection(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  g.begin_layer("first");
  const ValueIndex first =
      linear(g, g.input(InputKind::data, {DType::f32, {samples, 8}}, "x"), "first.weight");
  g.begin_layer("second");
  const ValueIndex second = g.add("gelu", {linear(g, first, "second.weight")});
  g.begin_layer("third");
  const ValueIndex third = g.add("gelu", {linear(g, second, "third.weight")});
  g.begin_layer("fourth");
  const ValueIndex sum = g.add("add", {linear(g, third, "fourth.weight"), first});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {sum, sum})});
  return training_graph(g.finish(), op_catalog(), {});
}

/// Products of a few features with one small weight after another, "layer.0.weight" of 3 to 8 features,
/// "layer.1.weight" of 8 to 3; what comes out is "layer.0.y". Few ways to split them.
inline Graph narrow_and_wide(std::int64_t samples, int layers, const TrainingOptions& options = {}) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x{-1};
  for (int l = 0; l < layers; ++l) {
    const std::string name = "layer." + std::to_string(l);
    const std::int64_t from = l % 2 == 0 ? 3 : 8, to = l % 2 == 0 ? 8 : 3;
    g.begin_layer(name);
    if (l == 0) x = g.input(InputKind::data, {DType::f32, {samples, from}}, "x");
    const ValueIndex weight =
        g.state(name + ".weight", {DType::f32, {from, to}}, {Initializer::Kind::normal, 0.1}, true);
    x = g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}}, name + ".y");
  }
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), options);
}

/// A weight that no gradient changes, between two that are trained.
inline Graph with_frozen_weight(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  for (const std::string name : {"first", "frozen", "third"}) {
    g.begin_layer(name);
    const ValueIndex weight =
        g.state(name + ".weight", {DType::f32, {8, 8}}, {Initializer::Kind::normal, 0.1}, name != "frozen");
    x = g.add("gelu", {g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}})});
  }
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), {});
}

/// A model of four layers, each on a device of its own, with micro-batches of a sample.
inline Lowered four_stages_of(const std::function<Graph(std::int64_t samples)>& graph,
                              const std::string& schedule, PlannerOptions options = without_buckets()) {
  std::string pin = "micro_batches = 8\nschedule = \"" + schedule + "\"\n";
  for (int stage = 0; stage < 4; ++stage) pin += "[[stage]]\nlayers = 1\nmesh = [1]\naxes = []\n";
  options.pin = parse_pin(pin, "pin");
  Lowered lowered;
  lowered.plan = plan_quietly({"four layers", "", 8, graph}, small_cluster(4), options);
  lowered.graph = graph(1);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// Three layers whose updates wait for no norm if they do not clip by it; two micro-batches, of a batch of 8.
inline Lowered three_layers_in_next_forward(const std::string& stages, const Cluster& cluster,
                                            Overlap overlap = Overlap::none, double clip = 0) {
  const auto graph = [clip](std::int64_t samples) {
    GraphBuilder g(op_catalog());
    g.graph().samples = samples;
    g.begin_layer("0");
    ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
    for (const std::string name : {"0", "1", "2"}) {
      if (name != "0") g.begin_layer(name);
      x = g.add("gelu", {linear(g, x, name + ".weight")});
    }
    g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
    return training_graph(g.finish(), op_catalog(), {.gradient_clip = clip});
  };
  PlannerOptions options;
  options.overlap = overlap_name(overlap);
  options.updates = update_order_name(UpdateOrder::next_forward);
  options.pin = parse_pin("micro_batches = 2\n" + stages, "pin");
  Lowered lowered;
  lowered.plan = plan_quietly({"three layers", "", 8, graph}, cluster, options);
  lowered.graph = graph(4);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// Three products with weights of 8 x 8, on a device of so much memory; all that updates alone take is on the
/// host, and moves go on beside the computation.
inline Lowered offloaded_perceptron(std::int64_t memory_bytes) {
  Cluster cluster = small_cluster(1);
  cluster.host_bytes_per_s = 1e9;
  Lowered lowered =
      three_layers_in_next_forward("[[stage]]\nlayers = 3\nmesh = [1]\naxes = []\n", cluster, Overlap::all);
  lowered.plan.updates = UpdateOrder::after_norm;
  lowered.plan.cluster.memory_bytes = memory_bytes;
  lowered.plan.on_host = states_of_updates_alone(GraphUses(lowered.graph));
  check_plan(lowered.plan, lowered.graph);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// The model with a skip connection: a value passes two stages by.
inline Lowered four_stages(const std::string& schedule) {
  return four_stages_of(with_skip_connection, schedule);
}

/// The same with stages that share meshes: each layer has two devices, and is split in another way.
inline Lowered on_meshes(const std::string& schedule, const std::vector<int>& mesh_of_stage) {
  PlannerOptions options = without_buckets();
  std::string pin = "micro_batches = 4\nschedule = \"1f1b\"\n";
  for (const char* axes : {"data", "tensor", "data", "tensor"})
    pin += std::string("[[stage]]\nlayers = 1\nmesh = [2]\naxes = [\"") + axes + "\"]\n";
  options.pin = parse_pin(pin, "pin");
  Lowered lowered;
  lowered.plan = plan_quietly({"skip", "", 8, with_skip_connection}, small_cluster(8), options);
  lowered.graph = with_skip_connection(2);
  lowered.plan = on_shared_meshes(lowered.plan, lowered.graph, mesh_of_stage);
  lowered.plan.schedule = schedule;
  check_plan(lowered.plan, lowered.graph);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

}  // namespace alpa::testing_models
