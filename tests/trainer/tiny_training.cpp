#include "tests/trainer/tiny_training.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <mutex>

#include "libalpa/base/philox.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/loss_scale.h"
#include "libalpa/dataset/array_source.h"
#include "libalpa/model/model.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/executor.h"
#include "tests/support/shared_meshes.h"
#include "tests/support/source_folder.h"
#include "tests/support/test_ranks.h"
#include "tests/trainer/own_samples.h"
#include "tests/trainer/tiny_batches.h"

namespace alpa {
namespace {

bool shares_meshes(const TinyCase& c) { return c.method == "interleaved" || c.method == "v-shaped"; }

/// Else its plan, where stages share meshes, is made of one with a mesh for each.
bool of_shared_meshes(const TinyCase& c) { return find_schedule(c.schedule).shares_meshes(); }

Cluster small_cluster(const TinyCase& c) {
  Cluster cluster;
  cluster.nodes = c.nodes;
  const bool is_made_of_another = shares_meshes(c) && !of_shared_meshes(c);
  cluster.devices_per_node = (is_made_of_another ? 2 * c.devices : c.devices) / c.nodes;
  cluster.between_nodes = {1e-5, 1e9};
  cluster.servers = c.servers;
  cluster.memory_bytes = 1 << 30;
  cluster.memory_bytes_per_s = 1e10;
  // So slow that splitting even these models' products pays, where a plan may leave them whole.
  cluster.f32_flops_per_s = cluster.bf16_flops_per_s = cluster.f16_flops_per_s = 1e9;
  cluster.launch_s = 1e-6;
  cluster.within_node = {1e-6, 1e10};
  if (c.wire_bound) {
    cluster.f32_flops_per_s = 1e15;
    cluster.within_node = cluster.between_nodes = {0, 1e6};
  }
  return cluster;
}

ModelDefinition tiny_model(const TinyCase& c) {
  const std::filesystem::path source = source_folder();
  ModelDefinition model =
      read_model(source / "tests/data" / ("tiny_" + c.model + ".toml"), {source / "share/blocks"});
  model.training.batch = c.batch;
  model.training.precision = c.precision;
  if (c.compression_rank > 0) {
    model.training.gradient_compression = GradientCompression::powersgd;
    model.training.compression_rank = c.compression_rank;
  }
  model.training.gradient_delay = c.gradient_delay;
  if (c.weight_decay) model.training.weight_decay = *c.weight_decay;
  if (c.optimizer) model.training.optimizer = *c.optimizer;
  if (c.sparse) model.training.embedding_gradients = EmbeddingGradients::sparse;
  if (c.gradient_clip) model.training.gradient_clip = *c.gradient_clip;
  return model;
}

Graph tiny_graph(const TinyCase& c, std::int64_t samples) {
  return training_step_graph(tiny_model(c), samples);
}

/// Of a pinned stage: where the planner may choose, half of them.
int recomputed_layers(Rematerialize rematerialize, int layers) {
  return rematerialize == Rematerialize::never       ? 0
         : rematerialize == Rematerialize::automatic ? layers / 2
                                                     : layers;
}

bool has_named_axes(const TinyCase& c) {
  return c.method.find(" x ") != std::string::npos || c.method.find(", ") != std::string::npos;
}

std::vector<std::string> parts_between(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + separator.size()) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

/// "data x tensor, data x data x data": two stages of two devices along each axis. Where the schedule has two
/// stages on each mesh, so have these.
PinnedPlan on_named_axes(const TinyCase& c) {
  const std::vector<std::string> stages = parts_between(c.method, ", ");
  const int layers = static_cast<int>(tiny_graph(c, c.batch / c.micro_batches).layers.size()),
            count = static_cast<int>(stages.size());
  std::string pin = fmt::format("micro_batches = {}\nschedule = \"{}\"\nstages_per_mesh = {}\n",
                                c.micro_batches, c.schedule, of_shared_meshes(c) ? 2 : 1);
  for (int stage = 0; stage < count; ++stage) {
    const std::vector<std::string> axes = parts_between(stages[static_cast<std::size_t>(stage)], " x ");
    const int own = layers * (stage + 1) / count - layers * stage / count;
    pin += fmt::format("[[stage]]\nlayers = {}\nrecomputed_layers = {}\nmesh = [{}]\naxes = [\"{}\"]\n", own,
                       recomputed_layers(c.rematerialize, own), fmt::join(std::vector(axes.size(), 2), ", "),
                       fmt::join(axes, "\", \""));
  }
  return parse_pin(pin, c.method);
}

Plan tiny_plan(const TinyCase& c) {
  Log log("test", LogLevel::off);
  PlannerOptions options;
  options.rematerialize = c.rematerialize;
  options.transfers = c.transfers;
  options.updates = update_order_name(c.updates);
  options.sync = c.sync;
  options.servers = c.servers;
  options.staleness = c.staleness;
  if (!c.constraints.empty()) options.constraints = parse_constraints(c.constraints, "limits.toml");
  options.no_constraint_prices = true;
  if (has_named_axes(c)) {
    options.pin = on_named_axes(c);
  } else if (c.method != "mixed" && !shares_meshes(c)) {
    options.method = c.method;
    options.micro_batches = c.micro_batches;
    options.schedule = c.schedule;
  } else {
    options.pin = PinnedPlan{c.method, c.micro_batches, c.schedule, of_shared_meshes(c) ? 2 : 1, {}};
    const int layers = static_cast<int>(tiny_graph(c, c.batch / c.micro_batches).layers.size());
    const int stages = shares_meshes(c) ? c.devices : 2;
    for (int stage = 0; stage < stages; ++stage) {
      const int first = layers * stage / stages, end = layers * (stage + 1) / stages;
      options.pin->stages.push_back({.first_layer = first,
                                     .end_layer = end,
                                     .mesh = {2},
                                     .micro_batches = c.micro_batches,
                                     .recomputed_layers = recomputed_layers(c.rematerialize, end - first),
                                     .roles = {stage % 2 == 0 ? AxisRole::data : AxisRole::tensor},
                                     .state_sharding = StateSharding::none});
    }
  }
  const PlanningModel model{c.model, "", c.batch,
                            [&](std::int64_t samples) { return tiny_graph(c, samples); },
                            tiny_model(c).training.group_samples};
  const Plan plan = make_plan(model, CostModel(small_cluster(c)), options, log);
  if (!shares_meshes(c) || of_shared_meshes(c)) return plan;
  const std::vector<int> mesh_of_stage =
      c.method == "v-shaped" ? std::vector{0, 1, 1, 0} : std::vector{0, 1, 0, 1};
  const Graph graph = tiny_graph(c, plan.micro_batch_samples);
  const Plan shared = on_shared_meshes(plan, graph, mesh_of_stage);
  check_plan(shared, graph);
  return shared;
}

Plan in_chunks(Plan plan, const TinyCase& c) {
  if (c.transfers != transfer_strategy_name(TransferStrategy::broadcast)) return plan;
  for (PlannedTransfer& transfer : plan.transfers) transfer.way.chunks = 3;
  plan.program_fingerprint = program_fingerprint(lower(tiny_graph(c, plan.micro_batch_samples), plan),
                                                 tiny_graph(c, plan.micro_batch_samples));
  return plan;
}

/// By state, and term of it.
using TermsOfStates = std::map<std::string, std::map<int, Values>>;

/// Puts a rank's tiles of states to those of other ranks.
void add_tiles(Executor& executor, const Graph& graph, TermsOfStates& states) {
  for (const StateTile& tile : executor.state_tiles()) {
    const State& state = graph.states[tile.state];
    const Shape& whole = value_of(graph, state.value).type.shape;
    Values& known = states[state.name]
                        .try_emplace(tile.term, static_cast<std::size_t>(element_count(whole)),
                                     std::numeric_limits<double>::quiet_NaN())
                        .first->second;
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(tile.tile)));
    executor.read_state(tile, bytes.data());
    const Values mine = unpacked(bytes, tile.tile.dtype);
    std::size_t other = 0;
    for_box(whole, tile.origin, tile.tile.shape, [&](std::size_t in_whole, std::size_t in_tile) {
      if (!std::isnan(known[in_whole]) && known[in_whole] != mine[in_tile]) ++other;
      known[in_whole] = mine[in_tile];
    });
    EXPECT_EQ(other, 0u) << "elements of " << state.name << " differ between ranks";
  }
}

std::map<std::string, Values> added_up(const TermsOfStates& states) {
  std::map<std::string, Values> sums;
  for (const auto& [name, terms] : states)
    for (const auto& [term, values] : terms) {
      Values& sum = sums.try_emplace(name, values.size(), 0.0).first->second;
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
  return sums;
}

}  // namespace

TinyCase unclipped(TinyCase c) {
  c.gradient_clip = 0;
  return c;
}

std::string TinyCase::name() const {
  std::string text = model + "_" + method + "_" + std::to_string(devices) + "ranks_" +
                     std::to_string(micro_batches) + "micro_" + schedule +
                     (rematerialize == Rematerialize::always      ? "_remat"
                      : rematerialize == Rematerialize::automatic ? "_remat_half"
                      : rematerialize == Rematerialize::selective ? "_remat_selective"
                                                                  : "") +
                     (nodes > 1 ? "_" + std::to_string(nodes) + "nodes" : "") +
                     (transfers != kFastestTransfers ? "_" + transfers : "") +
                     (compression_rank > 0 ? "_rank" + std::to_string(compression_rank) : "") +
                     (servers > 0 ? "_" + std::to_string(servers) + "servers" : "") +
                     (staleness >= 0 ? "_stale" + std::to_string(staleness) : "") +
                     (gradient_delay > 0 ? "_delay" + std::to_string(gradient_delay) : "") +
                     (batching != BatchingPolicy::frontier ? "_" + std::string(batching_name(batching)) : "");
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

TinyTraining::TinyTraining(const TinyCase& c)
    : batching_(c.batching),
      options_(tiny_model(c).training),
      plan_(in_chunks(tiny_plan(c), c)),
      graph_(tiny_graph(c, plan_.micro_batch_samples)),
      program_(lower(graph_, plan_)),
      evaluation_(lower(graph_, plan_, Purpose::evaluate)) {
  verify(program_);
  verify(evaluation_);
}

void TinyTraining::set_overlap(Overlap overlap) {
  plan_.overlap = overlap;
  plan_.program_fingerprint = program_fingerprint(lower(graph_, plan_), graph_);
}

void TinyTraining::set_sync(std::vector<GradientSync> sync) {
  plan_.sync = std::move(sync);
  plan_.program_fingerprint = program_fingerprint(lower(graph_, plan_), graph_);
}

void TinyTraining::set_on_host(std::vector<ValueIndex> states, double host_bytes_per_s) {
  plan_.on_host = std::move(states);
  plan_.cluster.host_bytes_per_s = host_bytes_per_s;
  plan_.program_fingerprint = program_fingerprint(lower(graph_, plan_), graph_);
}

void TinyTraining::set_activations_on_host(bool half, double host_bytes_per_s) {
  for (StagePlan& stage : plan_.stages) {
    const int layers = stage.end_layer - stage.first_layer;
    stage.recomputed_layers = half ? layers / 2 : layers;
    stage.recompute_form = RecomputeForm::offload;
  }
  plan_.cluster.host_bytes_per_s = host_bytes_per_s;
  plan_.program_fingerprint = program_fingerprint(lower(graph_, plan_), graph_);
}

TinyCurve TinyTraining::run(int steps, Device& device, Communicator& world,
                            const std::function<void(Executor&)>& at_end,
                            const std::function<void(Executor&)>& after_each_step) const {
  // Kernels of another kind of device want other memory.
  const Program training = lower(graph_, plan_, Purpose::train, device.kind()),
                evaluation = lower(graph_, plan_, Purpose::evaluate, device.kind());
  Executor executor(graph_, {&training, &evaluation}, device, world, 1);
  const auto arena_of = [&](const Program& program) { return program.at(executor.mesh()).memory.total; };
  EXPECT_EQ(executor.arena_bytes(), std::max(arena_of(training), arena_of(evaluation)));
  initialize_states(executor, graph_, 1);
  TinyCurve curve;
  TinyBatches batches(graph_, options_.batch, batching_);
  OwnSamples own(executor.samples(), batches.samples());
  LossScale scale = first_loss_scale(options_);
  std::vector<float> counts;  // [step] targets
  const auto add = [&](const std::optional<StepResult>& result) {
    if (!result) return;
    curve.losses.push_back(result->loss_sum / counts.at(static_cast<std::size_t>(result->step)));
    curve.norms.push_back(result->gradient_norm / scale.factor);
    curve.corrected_steps += result->correction_s > 0 ? 1 : 0;
    if (result->lead) curve.leads.push_back(*result->lead);
    scale = next_loss_scale(scale, std::isfinite(result->gradient_norm), options_);
    curve.metrics.emplace_back(result->metric_sums.begin(), result->metric_sums.end());
  };
  for (int step = 0; step < steps; ++step) {
    const float count = batches.fill(step);
    counts.push_back(count);
    own.pick();
    StepInputs inputs;
    inputs.samples = own.spans();
    inputs.group_rows = batches.group_rows();
    inputs.loss_scale = static_cast<float>(scale.factor) / count;
    inputs.step = step;
    const auto updates = static_cast<float>(step + 1 - scale.skipped_steps);
    inputs.update_scalars = {3e-3f,
                             1 - std::pow(0.9f, updates),
                             1 - std::pow(0.95f, updates),
                             1 / static_cast<float>(program_.micro_batches),
                             static_cast<float>(1 / scale.factor),
                             updates};
    add(executor.run(inputs));
    if (after_each_step) after_each_step(executor);
    const bool is_last = step + 1 == steps;
    if (!is_last && (finish_every_ == 0 || (step + 1) % finish_every_ != 0)) continue;
    while (!executor.knows_all_steps()) add(executor.finish());
    const double evaluation = executor.run(inputs, 1)->loss_sum / count;
    if (is_last) curve.evaluation = evaluation;
  }
  curve.skipped_steps = scale.skipped_steps;
  if (at_end) at_end(executor);
  return curve;
}

TinyCurve TinyTraining::run_on_threads(int steps,
                                       const std::function<std::unique_ptr<Device>()>& device_of_rank,
                                       const std::function<void(Executor&)>& after_each_step) const {
  TinyCurve first;
  TermsOfStates states;
  std::mutex one_rank;
  run_ranks(plan_.ranks(), device_of_rank, [&](int rank, Device& device, Communicator& world) {
    const auto at_end = [&](Executor& executor) {
      const std::lock_guard lock(one_rank);
      add_tiles(executor, graph_, states);
    };
    const TinyCurve curve = run(steps, device, world, at_end, after_each_step);
    if (rank == 0) first = curve;
  });
  first.states = added_up(states);
  return first;
}

}  // namespace alpa
