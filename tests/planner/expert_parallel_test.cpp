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
