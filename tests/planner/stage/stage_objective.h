#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/stage/stage_clock.h"
#include "libalpa/planner/stage/stage_problem.h"
#include "libalpa/planner/stage_places.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/solver/selection/strategy_selection.h"
#include "tests/planner/stage/live_bytes.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {

using namespace testing_models;

/// A choice of which no part is forbidden: the best where every choice has a cost drawn at random.
inline std::vector<int> random_choice(const StageProblem& stage, std::mt19937& random) {
  SelectionProblem problem = stage.selection();
  const std::size_t variables = stage.variables().variables.size();  // the others follow
  problem.nodes.resize(variables);
  std::erase_if(problem.edges, [&](const SelectionProblem::Edge& edge) {
    return std::max(edge.from, edge.to) >= static_cast<int>(variables);
  });
  std::uniform_real_distribution<double> drawn(0, 1);
  for (SelectionProblem::Node& node : problem.nodes)
    for (double& cost : node.cost) cost = drawn(random);
  for (SelectionProblem::Edge& edge : problem.edges)
    for (double& cost : edge.cost)
      if (cost < infinity) cost = 0;
  problem.memory_limit = std::int64_t{1} << 60;
  SelectionOptions options;
  options.gap = 1;  // any will do
  options.effort = 1000;
  return solve_selection(problem, options).choice;
}

struct ObjectiveCase {
  const char* model;  ///< of tests/data, or "frozen"
  MeshShape mesh;
  int stages, micro_batches;
  int recomputed_halves = 0;  ///< of the layers of each stage
  RecomputeForm form = RecomputeForm::full;
  bool on_nodes = false;  ///< each stage on a node of its own
  Overlap overlap = Overlap::none;
  UpdateOrder updates = UpdateOrder::after_norm;
  bool has_latency = true;           ///< messages and kernels take time to start
  bool offloads = false;             ///< what updates alone take rests on the host, or
  bool offloads_parameters = false;  ///< they too
  int servers = 0;                   ///< each device is a node then
};

inline void PrintTo(const ObjectiveCase& c, std::ostream* out) {
  *out << c.model << " on " << mesh_text(c.mesh);
}

inline Graph graph_of(const std::string& name) {
  if (name == "frozen") return with_frozen_weight(4);
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return training_step_graph(
      read_model(source / "tests/data" / ("tiny_" + name + ".toml"), {source / "share/blocks"}), 4);
}

class StageObjective : public testing::TestWithParam<ObjectiveCase> {
 protected:
  explicit StageObjective(LayerClasses (*layers)(const Graph&) = layers_apart, bool has_buckets = false) {
    graph_ = graph_of(GetParam().model);
    planning_ = std::make_unique<PlanningGraph>(prepare(graph_, layers(graph_)));
    planning_->overlap = GetParam().overlap;
    planning_->updates = GetParam().updates;
    planning_->has_buckets = has_buckets;
    if (GetParam().offloads)
      planning_->on_host = GetParam().offloads_parameters ? states_that_may_rest_on_host(planning_->uses)
                                                          : states_of_updates_alone(planning_->uses);
    mesh_costs_ = std::make_unique<MeshCosts>(graph_, GetParam().mesh, costs_);
    const int count = static_cast<int>(graph_.layers.size()), stages = GetParam().stages;
    for (int s = 0; s < stages; ++s) {
      requests_.push_back({.first_layer = count * s / stages,
                           .end_layer = count * (s + 1) / stages,
                           .mesh = GetParam().mesh,
                           .micro_batches = GetParam().micro_batches,
                           .in_flight = std::min(GetParam().micro_batches, stages - s),  // of 1F1B
                           .recomputed_layers = recomputed_layers(s),
                           .recompute_form = GetParam().form,
                           .pipeline_in_flight = std::min(GetParam().micro_batches, stages)});
    }
    place_stages(requests_, costs_.cluster());
    for (const StageRequest& request : requests_) {
      problems_.push_back(std::make_unique<StageProblem>(*planning_, request, *mesh_costs_));
      EXPECT_EQ(problems_.back()->why_not(), "");
    }
  }

  static Cluster cluster() {
    Cluster cluster = small_cluster(GetParam().on_nodes ? device_count(GetParam().mesh) : 8);
    if (GetParam().on_nodes) cluster.nodes = GetParam().stages;
    if (GetParam().servers > 0) {
      cluster.nodes = device_count(GetParam().mesh);
      cluster.devices_per_node = 1;
      cluster.servers = GetParam().servers;
    }
    if (!GetParam().has_latency)
      cluster.within_node.latency_s = cluster.between_nodes.latency_s = cluster.launch_s = 0;
    if (GetParam().offloads || GetParam().form == RecomputeForm::offload) cluster.host_bytes_per_s = 3e9;
    return cluster;
  }

  int recomputed_layers(int stage) const {
    const int count = static_cast<int>(graph_.layers.size()), stages = GetParam().stages;
    return (count * (stage + 1) / stages - count * stage / stages) * GetParam().recomputed_halves / 2;
  }

  /// Of what is priced for a stage: all but its part in messages and in the sum over all ranks.
  double program_seconds(const Program& program, std::size_t stage) const {
    const MeshProgram& mesh = program.meshes[MeshIndex(stage)];
    double sum = 0;
    for (const Segment& segment : mesh.segments) {
      const double runs = segment.kind == SegmentKind::update ? 1 : GetParam().micro_batches;
      const std::vector<double> seconds = instruction_seconds(program, mesh, segment, costs_);
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const InstructionBody& body = segment.instructions[i].body;
        if (segment.instructions[i].when == When::norm_binds) continue;
        if (!std::holds_alternative<Send>(body) && !std::holds_alternative<Receive>(body) &&
            !std::holds_alternative<Unpack>(body) && !std::holds_alternative<GlobalSum>(body))
          sum += runs * seconds[i];
      }
    }
    return sum;
  }

  /// [phase] What a stage's problem counts for that.
  std::vector<std::int64_t> counted_bytes(std::size_t stage, const std::vector<int>& choice,
                                          bool messages) const {
    std::vector<std::int64_t> bytes = problems_[stage]->bytes_over_time(choice);
    const std::vector<StageVariable>& variables = problems_[stage]->variables().variables;
    for (std::size_t i = 0; i < variables.size() && !messages; ++i)
      for (const auto& [begin, end, held] : variables[i].messages)
        for (int tick = begin; tick < end; ++tick) bytes[tick] -= held[choice[i]];
    const StageScope scope(*planning_, requests_[stage]);
    const StageClock clock(scope);
    std::vector<std::int64_t> most;
    for (const Phase phase : kPhases)
      most.push_back(*std::max_element(
          bytes.begin() + clock.begin(phase),
          bytes.begin() + (phase == Phase::update ? clock.end() : clock.begin(next(phase)))));
    return most;
  }

  double objective_seconds(std::size_t stage, const std::vector<int>& choice,
                           const StageSolution& solution) const {
    double seconds =
        selection_cost(problems_[stage]->selection(), problems_[stage]->with_conversions(choice));
    for (const auto& [v, layout] : solution.received_layout) {  // in messages
      const Value& value = value_of(graph_, v);
      const bool once = value.producer < 0 || node_of(graph_, value.producer).op->sums_micro_batches;
      const MeshShape& mesh = GetParam().mesh;
      const int per_node = costs_.cluster().devices_per_node;
      const auto bytes = static_cast<double>(byte_count(tile_type(value.type, layout, mesh)));
      const double arrives_s =
          GetParam().on_nodes
              ? costs_.arrival_seconds(bytes, different_tiles(layout, mesh, per_node), per_node)
              : costs_.send_seconds(true, bytes);
      seconds -= (once ? 1 : GetParam().micro_batches) * (costs_.copy_seconds(bytes) + arrives_s);
    }
    return seconds;
  }

  void expect_equal(const std::vector<std::vector<int>>& choices) {
    std::vector<StageSolution> solutions;
    for (std::size_t s = 0; s < choices.size(); ++s)
      solutions.push_back(problems_[s]->solution_of(choices[s]));
    Plan plan = assemble(*planning_, requests_, solutions, "1f1b", costs_.cluster());
    plan.overlap = GetParam().overlap;
    plan.updates = GetParam().updates;
    check_plan(plan, graph_);
    const Program program = lower(graph_, plan);
    verify(program);
    for (std::size_t s = 0; s < choices.size(); ++s) {
      const double expected = program_seconds(program, s);
      EXPECT_NEAR(objective_seconds(s, choices[s], solutions[s]), expected, 1e-9 * expected) << "stage " << s;
      expect_memory(s, choices[s], program.meshes[MeshIndex(s)], false);
      expect_memory(s, choices[s], program.meshes[MeshIndex(s)], true);
      // The solution says of itself what was chosen.
      EXPECT_EQ(problems_[s]->reader().choice_of(solutions[s]), choices[s]);
    }
    const double joined_s = simulate(program, costs_, Overlap::none).step_s;
    EXPECT_LE(simulate(program, costs_, Overlap::all).step_s, joined_s * (1 + 1e-9));
    EXPECT_LE(busiest_lane_s(program), simulate(program, costs_, Overlap::all).step_s * (1 + 1e-9));
  }

  /// To the byte; messages have a bound that is known before the neighbouring stages are.
  void expect_memory(std::size_t stage, const std::vector<int>& choice, const MeshProgram& mesh,
                     bool messages) const {
    const std::vector<std::int64_t> counted = counted_bytes(stage, choice, messages),
                                    live = live_bytes(mesh, messages);
    for (const Phase phase : kPhases) {
      const auto p = static_cast<std::size_t>(phase);
      // What is kept for a second update alone is not counted.
      const bool twice = phase == Phase::update && planning_->corrects_updates();
      const std::int64_t more = (twice ? bytes_of_gradients(mesh) : 0) + bytes_of_early_splits(mesh);
      EXPECT_GE(counted[p] + more, live[p]) << "stage " << stage;
      if (!messages) {
        EXPECT_LE(counted[p], live[p]) << "stage " << stage;
      }
    }
  }

  /// What sums that end up split, or of gradients held back, take where they go on beside other work, as
  /// there is room for that: stages are solved as if they came after it.
  static std::int64_t bytes_of_early_splits(const MeshProgram& mesh) {
    std::set<BufferIndex> early;
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions)
        if (const auto* convert = std::get_if<Convert>(&instruction.body);
            convert && convert->to != convert->from)
          for (const BufferIndex b : {convert->to, convert->packed, convert->unpacked})
            if (b >= 0 && mesh.buffers[b].residence == Residence::step) early.insert(b);
    std::int64_t bytes = 0;
    for (const BufferIndex b : early) bytes += mesh.buffers[b].bytes;
    return bytes;
  }

  std::int64_t bytes_of_gradients(const MeshProgram& mesh) const {
    std::int64_t bytes = 0;
    for (const Buffer& buffer : mesh.buffers) {
      const NodeIndex maker = buffer.value < 0 ? NodeIndex() : value_of(graph_, buffer.value).producer;
      if (buffer.residence == Residence::step && maker >= 0 && node_of(graph_, maker).op->sums_micro_batches)
        bytes += buffer.bytes;
    }
    return bytes;
  }

  double busiest_lane_s(const Program& program) const {
    double most = 0;
    for (const MeshProgram& mesh : program.meshes) {
      std::vector<double> busy(mesh.lanes.size());
      for (const Segment& segment : mesh.segments) {
        const double runs = segment.kind == SegmentKind::update ? 1 : GetParam().micro_batches;
        const std::vector<double> seconds = instruction_seconds(program, mesh, segment, costs_);
        for (std::size_t i = 0; i < seconds.size(); ++i)
          if (segment.instructions[i].when != When::norm_binds)
            busy[segment.instructions[i].lane] += runs * seconds[i];
      }
      most = std::max(most, std::ranges::max(busy));
    }
    return most;
  }

  Graph graph_;
  CostModel costs_{cluster()};
  std::unique_ptr<PlanningGraph> planning_;
  std::unique_ptr<MeshCosts> mesh_costs_;
  std::vector<StageRequest> requests_;
  std::vector<std::unique_ptr<StageProblem>> problems_;
};

inline ObjectiveCase offloading(ObjectiveCase c) {
  c.offloads = true;
  return c;
}

inline ObjectiveCase offloading_parameters(ObjectiveCase c) {
  c.offloads_parameters = true;
  return offloading(c);
}

inline ObjectiveCase before_norm(ObjectiveCase c) {
  c.updates = UpdateOrder::before_norm;
  return c;
}

inline ObjectiveCase without_latency(ObjectiveCase c) {
  c.has_latency = false;
  return c;
}

inline std::string case_name(const testing::TestParamInfo<ObjectiveCase>& test) {
  const ObjectiveCase& c = test.param;
  std::string name = std::string(c.model) + "_" + std::to_string(c.stages) + "stages";
  for (const int extent : c.mesh) name += "_" + std::to_string(extent);
  return name +
         (c.recomputed_halves == 0   ? ""
          : c.recomputed_halves == 1 ? "_remat_half"
                                     : "_remat") +
         (c.form == RecomputeForm::selective ? "_selective" : "") +
         (c.form == RecomputeForm::offload ? "_on_host" : "") + (c.on_nodes ? "_on_nodes" : "") +
         (c.overlap == Overlap::none ? "" : std::string("_overlaps_") + overlap_name(c.overlap)) +
         (c.updates == UpdateOrder::after_norm ? "" : "_updates_before_norm") +
         (c.has_latency ? "" : "_without_latency") + (c.offloads ? "_offloads" : "") +
         (c.offloads_parameters ? "_parameters" : "") +
         (c.servers > 0 ? "_" + std::to_string(c.servers) + "servers" : "");
}

}  // namespace alpa
