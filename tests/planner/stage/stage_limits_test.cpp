#include "libalpa/planner/stage/stage_limits.h"

#include <gmock/gmock.h>

#include "libalpa/planner/assemble.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/met_constraints.h"
#include "libalpa/planner/stage/stage_problem.h"
#include "tests/support/cheapest_choices.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::ElementsAre;

TEST(Matches, AStarIsAnyCharacters) {
  EXPECT_TRUE(matches("block.1.mlp.up", "block.1.mlp.up"));
  EXPECT_TRUE(matches("block.*.mlp.up", "block.12.mlp.up"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.y*y", "a.yx.yy"));
  EXPECT_FALSE(matches("block.*.mlp.up", "block.1.mlp.up_bias"));
  EXPECT_FALSE(matches("block.1", "block.12"));
  EXPECT_FALSE(matches("", "x"));
}

TEST(NamedTensors, AreParametersAndTheLastValueOfEachName) {
  const Graph graph = tiny_gpt(8);
  const std::map<std::string, ValueIndex> tensors = named_tensors(graph);
  EXPECT_EQ(value_of(graph, tensors.at("block.0.up")).kind, ValueKind::state);
  const ValueIndex logits = tensors.at("b s d, v d -> b s v");
  EXPECT_EQ(value_of(graph, logits).type.shape, (Shape{8, 8, 32}));
  EXPECT_FALSE(tensors.contains("tokens"));
}

TEST(ApartByLimits, LayersThatAreLimitedOtherwiseAreNotFolded) {
  const Graph graph = tiny_gpt(8);
  const auto classes = [&](const std::string& text) {
    return prepare(graph, stage_limits(parse_constraints(text, "limits.toml"), graph)).classes.of_layer;
  };
  EXPECT_THAT(classes("most_zero = 1"), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(classes("[[tensor]]\nname = \"block.*.up\"\nwhole = true"), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(classes("[[tensor]]\nname = \"block.1.up\"\nwhole = true"), ElementsAre(0, 1, 2, 3));
}

/// A product, split in every way that the given limits allow, of which more are asked for.
struct LimitCase {
  const char* name;
  const char* asked;
  const char* given = "micro_batches = [1, 2]";  // no limit
  int micro_batches = 2;
  std::int64_t gradient_delay = 0;
};

class LimitedStage : public testing::TestWithParam<LimitCase> {
 protected:
  /// Computing, updating and sending take about as long.
  static Cluster cluster() {
    Cluster cluster = small_cluster(4);
    cluster.memory_bytes_per_s = cluster.f32_flops_per_s = cluster.within_node.bytes_per_s = 1e8;
    cluster.launch_s = cluster.within_node.latency_s = 1e-8;
    return cluster;
  }
};

TEST_P(LimitedStage, IsTheCheapestOfAllChoicesThatMeetTheConstraints) {
  TrainingOptions training;
  training.gradient_delay = GetParam().gradient_delay;
  const Graph graph = narrow_and_wide(4, 1, training);
  const CostModel costs(cluster());
  const PlanConstraints given = parse_constraints(GetParam().given, "given.toml");
  PlanConstraints asked = parse_constraints(GetParam().asked, "asked.toml"), both = given;
  both.all.insert(both.all.end(), asked.all.begin(), asked.all.end());
  const PlanningGraph open = prepare(graph, stage_limits(given, graph)),
                      limited = prepare(graph, stage_limits(both, graph));
  for (const MeshShape& mesh : {MeshShape{2}, MeshShape{4}}) {
    const StageRequest request{
        .first_layer = 0, .end_layer = 1, .mesh = mesh, .micro_batches = GetParam().micro_batches};
    const MeshCosts mesh_costs(graph, mesh, costs);
    const StageProblem problem(open, request, mesh_costs);
    const CheapestChoices cheapest(problem.selection(), 10'000'000);
    ASSERT_TRUE(cheapest.has_room());
    const auto choices = cheapest.find(50'000);
    const auto best = std::ranges::find_if(choices, [&](const auto& choice) {
      const std::vector<StageSolution> solutions{problem.solution_of(choice.second)};
      return unmet_constraints(asked, assemble(open, {request}, solutions, "1f1b", cluster()), graph).empty();
    });
    ASSERT_NE(best, choices.begin()) << "nothing is asked for on " << mesh_text(mesh);
    ASSERT_NE(best, choices.end()) << "more choices to look at on " << mesh_text(mesh);
    const StageSolution found = solve_stage(limited, request, mesh_costs, {.gap = 0});
    ASSERT_TRUE(found.feasible);
    constexpr double rounding = 1e-9;  // sums in another order
    EXPECT_NEAR(found.step_s, best->first, rounding * best->first) << mesh_text(mesh);
  }
}

constexpr const char* kDataParallel = "most_tensor_parallel = 1";

INSTANTIATE_TEST_SUITE_P(
    Constraints, LimitedStage,
    testing::Values(
        LimitCase{"no_tensor_parallelism", "most_tensor_parallel = 1"},
        LimitCase{"zero_0", "most_zero = 0", kDataParallel},
        LimitCase{"zero_1", "most_zero = 1", kDataParallel, 1},
        LimitCase{"zero_2", "most_zero = 2", kDataParallel, 1},
        LimitCase{"zero_0_delayed", "most_zero = 0", kDataParallel, 1, 1},
        LimitCase{"zero_1_delayed", "most_zero = 1", kDataParallel, 1, 1},
        LimitCase{"weight_whole", "[[tensor]]\nname = \"layer.0.weight\"\nwhole = true"},
        LimitCase{"weight_split", "[[tensor]]\nname = \"*.weight\"\nsplit = 1", kDataParallel},
        LimitCase{"result_whole", "[[tensor]]\nname = \"layer.0.y\"\nwhole = true"},
        LimitCase{"result_split", "[[tensor]]\nname = \"*.y\"\nsplit = 0"},
        LimitCase{"all_reduced", "[[gradient]]\nname = \"*\"\nway = \"all-reduce\"", kDataParallel},
        LimitCase{"updates_sharded", "[[gradient]]\nname = \"*\"\nway = \"zero-1\"", kDataParallel, 1},
        LimitCase{"gradients_sharded", "[[gradient]]\nname = \"*\"\nway = \"zero-2\"", kDataParallel},
        LimitCase{"parameters_sharded", "[[gradient]]\nname = \"*\"\nway = \"zero-3\"", kDataParallel},
        LimitCase{"made_of_factors", "[[gradient]]\nname = \"*\"\nway = \"factors\"", kDataParallel},
        LimitCase{"several",
                  "most_zero = 1\n[[tensor]]\nname = \"*.weight\"\nwhole = true\n"
                  "[[tensor]]\nname = \"*.y\"\nsplit = 1"}),
    [](const auto& limited) { return limited.param.name; });

}  // namespace
}  // namespace alpa
