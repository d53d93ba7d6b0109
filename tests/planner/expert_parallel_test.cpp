#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "libalpa/model/model.h"
#include "libalpa/plan/facts/plan_facts.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/sharding/strategy.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

/// A plan of the tiny mixture of experts for one stage of four devices that may do with them as it likes.
class ExpertParallelism : public testing::Test {
 protected:
  explicit ExpertParallelism(const std::string& method = "intra-only") {
    const std::filesystem::path source = ALPA_SOURCE_DIR;
    const ModelDefinition model = read_model(source / "tests/data/tiny_moe.toml", {source / "share/blocks"});
    PlannerOptions options;
    options.method = method;
    options.micro_batches = 1;
    options.rematerialize = Rematerialize::never;
    Log log("test", LogLevel::off);
    const auto graph_of = [&](std::int64_t samples) { return training_step_graph(model, samples); };
    plan_ = make_plan({"moe", "", 8, graph_of}, CostModel(testing_models::small_cluster(4)), options, log);
    graph_ = graph_of(plan_.micro_batch_samples);
  }

  /// How the nodes of that operator of the first layer with experts are split.
  std::set<std::string> strategies_of(const std::string& op, const std::string& equation = "") const {
    std::set<std::string> texts;
    for (const NodeIndex n : graph_.nodes.indices()) {
      const Node& node = graph_.nodes[n];
      if (graph_.layers[node.layer] != "first" || node.op->name != op) continue;
      if (!equation.empty() && node.attributes.text("equation") != equation) continue;
      texts.insert(
          strategy_text(*node.op, {operand_types(graph_, node), node.attributes}, plan_.node_strategy[n]));
    }
    return texts;
  }

  int all_to_alls(SegmentKind segment) const {
    const Program program = lower(graph_, plan_);
    int count = 0;
    for (const Instruction& instruction :
         testing_models::segment_of_kind(program.meshes[0_m], segment).instructions)
      if (const auto* convert = std::get_if<Convert>(&instruction.body))
        count += convert->step.kind == ConversionKind::all_to_all;
    return count;
  }

  Plan plan_;
  Graph graph_;
};

// GShard (ICLR'21): tokens split by groups, experts by themselves. Nothing in the planner knows of experts;
// in each of the two layers tokens go to the experts and back, and so do their gradients (four all-to-alls,
// as Alpa finds).
TEST_F(ExpertParallelism, IsFoundByTheSearch) {
  const std::set<std::string> by_group{"g:0"}, by_expert{"e:0"};
  EXPECT_EQ(strategies_of("dispatch"), by_group);
  EXPECT_EQ(strategies_of("einsum", "e g c d, e d f -> e g c f"), by_expert);
  EXPECT_EQ(strategies_of("einsum", "e g c f, e f d -> e g c d"), by_expert);
  EXPECT_EQ(strategies_of("combine"), by_group);
  EXPECT_EQ(all_to_alls(SegmentKind::forward), 2 * 2);
  EXPECT_EQ(all_to_alls(SegmentKind::backward), 2 * 2);
  EXPECT_THAT(plan_facts(plan_, graph_).split, testing::StartsWith("DP4 · EP4"));
}

/// Its samples, experts and heads can be split in two, and hardly anything in four.
ModelDefinition halves() {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return parse_model(
      "name = \"halves\"\nbase = \"tiny_moe.toml\"\n[dimensions]\nvocabulary = 62\nmodel = 30\nheads = 2\n"
      "experts = 2\n[constants]\n[training]\nbatch = 4\nsequence = 14\n",
      (source / "tests/data/halves.toml").string(), {source / "share/blocks"});
}

// Eight devices, four on each of two nodes.
TEST(ThreeMeshAxes, SplitSamplesExpertsAndWeightsOfOneStageWhereNothingIsSplitInFour) {
  Cluster cluster = testing_models::small_cluster(4);
  cluster.nodes = 2;
  cluster.f32_flops_per_s = 1e9;
  const ModelDefinition model = halves();
  const auto graph_of = [&](std::int64_t samples) { return training_step_graph(model, samples); };
  const auto planned = [&](int mesh_axes) {
    PlannerOptions options = testing_models::without_buckets();
    options.method = "intra-only";
    options.effort = PlannerEffort::quick;
    options.micro_batches = 1;
    options.rematerialize = Rematerialize::never;
    options.mesh_axes = mesh_axes;
    return testing_models::plan_quietly({"halves", "", 4, graph_of}, cluster, options);
  };
  const Plan two = planned(2), three = planned(3);
  EXPECT_EQ(two.meshes[0_m].shape.size(), 2u);
  EXPECT_EQ(three.meshes[0_m].shape, (MeshShape{2, 2, 2}));
  EXPECT_LT(three.prediction.step_s, 0.9 * two.prediction.step_s);
  const std::string split = plan_facts(three, graph_of(4)).split;
  for (const char* kind : {"DP2", "EP2", "TP2"}) EXPECT_THAT(split, testing::HasSubstr(kind));
}

class DeepSpeedMoe : public ExpertParallelism {
 protected:
  DeepSpeedMoe() : ExpertParallelism("deepspeed-moe") {}
};

// DeepSpeed-MoE (ICML'22): all else is data parallel, as gradients are summed where the optimizer's states
// are.
TEST_F(DeepSpeedMoe, SplitsExpertsAndElseSamples) {
  const std::set<std::string> by_group{"g:0"}, by_expert{"e:0"};
  EXPECT_EQ(plan_.stages.size(), 1u);
  EXPECT_EQ(strategies_of("dispatch"), by_group);
  EXPECT_EQ(strategies_of("einsum", "e g c d, e d f -> e g c f"), by_expert);
  EXPECT_EQ(strategies_of("einsum", "e g c f, e f d -> e g c d"), by_expert);
  EXPECT_EQ(strategies_of("combine"), by_group);
  EXPECT_EQ(strategies_of("attention"), std::set<std::string>{"b:0"});
  EXPECT_EQ(all_to_alls(SegmentKind::forward), 2 * 2);
  EXPECT_EQ(all_to_alls(SegmentKind::backward), 2 * 2);
}

}  // namespace
}  // namespace alpa
