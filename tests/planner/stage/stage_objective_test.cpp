// What a stage's problem says of a choice is what the lowered program of that choice takes.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

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
namespace {

using namespace testing_models;

/// A choice of which no part is forbidden: the best where every choice has a cost drawn at random.
std::vector<int> random_choice(const StageProblem& stage, std::mt19937& random) {
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
};

void PrintTo(const ObjectiveCase& c, std::ostream* out) { *out << c.model << " on " << mesh_text(c.mesh); }

Graph graph_of(const std::string& name) {
  if (name == "frozen") return with_frozen_weight(4);
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return training_step_graph(
      read_model(source / "tests/data" / ("tiny_" + name + ".toml"), {source / "share/blocks"}), 4);
}

class StageObjective : public testing::TestWithParam<ObjectiveCase> {
 protected:
  explicit StageObjective(LayerClasses (*layers)(const Graph&) = layers_apart) {
    graph_ = graph_of(GetParam().model);
    planning_ = std::make_unique<PlanningGraph>(prepare(graph_, layers(graph_)));
    planning_->overlap = GetParam().overlap;
    planning_->updates = GetParam().updates;
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
    if (!GetParam().on_nodes) return small_cluster(8);
    Cluster nodes = small_cluster(device_count(GetParam().mesh));
    nodes.nodes = GetParam().stages;
    return nodes;
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
      EXPECT_GE(counted[p] + (twice ? bytes_of_gradients(mesh) : 0), live[p]) << "stage " << stage;
      if (!messages) {
        EXPECT_LE(counted[p], live[p]) << "stage " << stage;
      }
    }
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

TEST_P(StageObjective, OfRandomChoicesIsTheTimeOfTheirProgram) {
  std::mt19937 random(7);
  const int draws = GetParam().model == std::string("unet") ? 4 : 14;
  for (int draw = 0; draw < draws && !HasFailure(); ++draw) {
    std::vector<std::vector<int>> choices;
    for (const auto& problem : problems_) choices.push_back(random_choice(*problem, random));
    expect_equal(choices);
  }
}

TEST_P(StageObjective, OfTheSolversChoiceIsTheTimeOfItsProgram) {
  std::vector<std::vector<int>> choices;
  SelectionOptions options;
  options.gap = 0.05;
  options.effort = 1000;
  for (const auto& problem : problems_) {
    choices.push_back(solve_selection(problem->selection(), options).choice);
    choices.back().resize(problem->variables().variables.size());
  }
  expect_equal(choices);
}

// Memory binds: the solver finds rows for what conversions hold where it needs them.
TEST_P(StageObjective, OfAStageThatFitsJustKeepsToTheMemoryThereIs) {
  SelectionOptions options;
  options.gap = 0.05;
  options.effort = 1000;
  StageRequest request = requests_[0];
  const auto bytes = [&](const StageSolution& solution) {
    return solution.resident_bytes + request.in_flight * solution.micro_batch_bytes;
  };
  const StageSolution free = solve_stage(*planning_, request, *mesh_costs_, options);
  ASSERT_TRUE(free.feasible) << free.why_not;
  const std::int64_t limit = bytes(free) * 19 / 20;
  request.reserve_bytes = costs_.cluster().memory_bytes - limit;
  const StageSolution tight = solve_stage(*planning_, request, *mesh_costs_, options);
  if (!tight.feasible) {
    EXPECT_GT(tight.least_memory - request.reserve_bytes, limit);
    return;
  }
  EXPECT_LE(bytes(tight), limit);
  SelectionOptions no_time = options;
  no_time.time_limit_s = 0;
  const StageSolution known = solve_stage(*planning_, request, *mesh_costs_, no_time, &tight);
  EXPECT_TRUE(known.feasible);
  EXPECT_LE(known.step_s, tight.step_s);
  EXPECT_LE(bytes(known), limit);
  if (GetParam().stages > 1) return;  // its neighbours were not solved
  Plan plan = assemble(*planning_, requests_, {tight}, "1f1b", costs_.cluster());
  plan.updates = GetParam().updates;
  EXPECT_EQ(std::ranges::max(live_bytes(lower(graph_, plan).meshes[0_m], true)), bytes(tight));
}

class FoldedStageObjective : public StageObjective {
 protected:
  FoldedStageObjective() : StageObjective(classify_layers) {}
};

// Equal layers share decisions and one stretch of time. What the first or the last of them converts that
// others do not is counted once or as often as there are layers, and what one hands to the next is held a
// little longer.
TEST_P(FoldedStageObjective, IsNearThatOfTheProgram) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 8 && !HasFailure(); ++draw) {
    std::vector<std::vector<int>> choices;
    std::vector<StageSolution> solutions;
    for (const auto& problem : problems_) {
      choices.push_back(random_choice(*problem, random));
      solutions.push_back(problem->solution_of(choices.back()));
    }
    const Plan plan = assemble(*planning_, requests_, solutions, "1f1b", costs_.cluster());
    check_plan(plan, graph_);
    const Program program = lower(graph_, plan);
    for (std::size_t s = 0; s < choices.size(); ++s) {
      const double expected = program_seconds(program, s);
      EXPECT_GE(objective_seconds(s, choices[s], solutions[s]), expected * (1 - 1e-9));
      EXPECT_LE(objective_seconds(s, choices[s], solutions[s]), expected * 1.02);
      const std::vector<std::int64_t> counted = counted_bytes(s, choices[s], false),
                                      live = live_bytes(program.meshes[MeshIndex(s)], false);
      for (const Phase phase : kPhases) {
        const auto p = static_cast<std::size_t>(phase);
        EXPECT_GE(static_cast<double>(counted[p]), 0.99 * static_cast<double>(live[p])) << p;
        EXPECT_LE(static_cast<double>(counted[p]), 1.1 * static_cast<double>(live[p])) << p;
      }
    }
  }
}

ObjectiveCase before_norm(ObjectiveCase c) {
  c.updates = UpdateOrder::before_norm;
  return c;
}

constexpr RecomputeForm kSelective = RecomputeForm::selective;

std::string case_name(const testing::TestParamInfo<ObjectiveCase>& test) {
  const ObjectiveCase& c = test.param;
  std::string name = std::string(c.model) + "_" + std::to_string(c.stages) + "stages";
  for (const int extent : c.mesh) name += "_" + std::to_string(extent);
  return name +
         (c.recomputed_halves == 0   ? ""
          : c.recomputed_halves == 1 ? "_remat_half"
                                     : "_remat") +
         (c.form == RecomputeForm::selective ? "_selective" : "") + (c.on_nodes ? "_on_nodes" : "") +
         (c.overlap == Overlap::none ? "" : std::string("_overlaps_") + overlap_name(c.overlap)) +
         (c.updates == UpdateOrder::after_norm ? "" : "_updates_before_norm");
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, StageObjective,
    testing::Values(
        ObjectiveCase{"gpt", {}, 1, 2, 0}, ObjectiveCase{"gpt", {2}, 1, 2, 0},
        ObjectiveCase{"gpt", {2}, 1, 2, 2}, ObjectiveCase{"gpt", {4}, 1, 1, 0},
        ObjectiveCase{"gpt", {2}, 2, 4, 0}, ObjectiveCase{"gpt", {2}, 2, 4, 2},
        before_norm({"gpt", {2}, 1, 2, 0}), before_norm({"gpt", {2}, 2, 4, 2}),
        before_norm({"adafactor", {2}, 1, 2, 0}), before_norm({"gpt", {2, 2}, 1, 2, 0}),
        before_norm({"bf16_sums", {4}, 1, 2, 0}), ObjectiveCase{"unclipped", {2}, 1, 2, 0},
        ObjectiveCase{"unclipped", {2}, 2, 4, 2}, ObjectiveCase{"llama", {2}, 1, 2, 0},
        ObjectiveCase{"llama", {2}, 2, 2, 2}, ObjectiveCase{"bert", {2}, 1, 2, 0},
        ObjectiveCase{"bert", {4}, 1, 2, 2}, ObjectiveCase{"moe", {2}, 1, 2, 0},
        ObjectiveCase{"moe", {2}, 2, 2, 2}, ObjectiveCase{"deepseek_moe", {2}, 1, 2, 0},
        ObjectiveCase{"conformer", {2}, 1, 2, 0}, ObjectiveCase{"lstm", {2}, 1, 2, 2},
        ObjectiveCase{"gru", {2}, 1, 2, 0}, ObjectiveCase{"vit", {2}, 1, 2, 0},
        ObjectiveCase{"wrn", {2}, 1, 2, 0}, ObjectiveCase{"wrn", {2}, 2, 2, 2},
        ObjectiveCase{"image_mlp", {2}, 1, 2, 0}, ObjectiveCase{"mlp", {2, 2}, 1, 2, 2},
        ObjectiveCase{"gpt", {2, 2}, 1, 2, 0}, ObjectiveCase{"unet", {2}, 1, 2, 0},
        ObjectiveCase{"unet", {2}, 2, 2, 0}, ObjectiveCase{"unet", {2}, 3, 3, 2},
        ObjectiveCase{"frozen", {2}, 1, 2, 0}, ObjectiveCase{"frozen", {4}, 1, 2, 2},
        ObjectiveCase{"adafactor", {2}, 1, 2, 0}, ObjectiveCase{"adafactor", {2, 2}, 1, 2, 2},
        ObjectiveCase{"adafactor", {2}, 2, 4, 0}, ObjectiveCase{"bf16_sums", {2}, 2, 4, 0},
        ObjectiveCase{"gpt", {2}, 2, 4, 1}, ObjectiveCase{"moe", {2}, 1, 2, 1},
        ObjectiveCase{"unet", {2}, 2, 2, 1}, ObjectiveCase{"wrn", {2}, 1, 2, 1},
        ObjectiveCase{"llama", {2, 2}, 1, 2, 1}, ObjectiveCase{"gpt", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"gpt", {2, 2}, 2, 4, 1, kSelective}, ObjectiveCase{"llama", {2}, 2, 2, 2, kSelective},
        ObjectiveCase{"moe", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"deepseek_moe", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"conformer", {2}, 1, 2, 2, kSelective}, ObjectiveCase{"lstm", {2}, 1, 2, 2, kSelective},
        ObjectiveCase{"wrn", {2}, 2, 2, 2, kSelective}, ObjectiveCase{"unet", {2}, 3, 3, 2, kSelective},
        ObjectiveCase{"unet", {2}, 2, 2, 1, kSelective}, ObjectiveCase{"mlp", {2, 2, 2}, 1, 2, 2},
        ObjectiveCase{"moe", {2, 2, 2}, 1, 1, 0},
        ObjectiveCase{.model = "gpt", .mesh = {2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "gpt", .mesh = {2, 2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "bf16_sums", .mesh = {2}, .stages = 2, .micro_batches = 4, .on_nodes = true},
        ObjectiveCase{.model = "gpt", .mesh = {2}, .stages = 2, .micro_batches = 4, .overlap = Overlap::all},
        ObjectiveCase{
            .model = "unet", .mesh = {2}, .stages = 2, .micro_batches = 2, .overlap = Overlap::transfers}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Tiny, FoldedStageObjective,
    testing::Values(ObjectiveCase{"gpt", {2}, 1, 2, 0}, ObjectiveCase{"gpt", {2}, 1, 2, 2},
                    ObjectiveCase{"gpt", {2}, 2, 4, 2}, ObjectiveCase{"llama", {2}, 1, 2, 0},
                    ObjectiveCase{"moe", {2}, 1, 2, 0}, ObjectiveCase{"conformer", {2}, 1, 2, 0},
                    ObjectiveCase{"vit", {2}, 1, 2, 0}, ObjectiveCase{"wrn", {2}, 2, 2, 2},
                    ObjectiveCase{"mlp", {2, 2}, 1, 2, 2}, ObjectiveCase{"gpt", {2}, 1, 2, 1},
                    ObjectiveCase{"gpt", {2}, 2, 4, 2, kSelective},
                    ObjectiveCase{"wrn", {2}, 2, 2, 2, kSelective}, ObjectiveCase{"gpt", {2, 2, 2}, 1, 2, 1}),
    case_name);

}  // namespace
}  // namespace alpa
