#include "libalpa/planner/tuning/plan_choices.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

#include "libalpa/plan/facts/synchronisation.h"
#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/met_constraints.h"
#include "libalpa/program/order/verify.h"
#include "tests/planner/tuning/hidden_costs.h"

namespace alpa {
namespace {

using namespace testing_models;

Plan planned_by(const std::string& method, int micro_batches) {
  PlannerOptions options = without_buckets();
  options.method = method;
  options.micro_batches = micro_batches;
  return plan_quietly(small_model(), small_cluster(4), options);
}

Graph two_blocks(std::int64_t samples) { return tiny_gpt(samples, 2); }

/// All parameters in one way, where they have it, without buckets, turns and overlap.
TuningChoice all_in(const PlanChoices& choices, const std::string& way) {
  TuningChoice choice(choices.genes().size(), 0);
  for (std::size_t g = 0; g < choice.size(); ++g) {
    const std::vector<std::string>& words = choices.genes()[g].words;
    if (const auto at = std::ranges::find(words, way); at != words.end())
      choice[g] = static_cast<int>(at - words.begin());
  }
  return choice;
}

std::map<std::string, std::string> ways_in_words(const Plan& plan, const Graph& graph) {
  const GraphUses uses(graph);
  const Placement placement(plan, uses);
  const Conversions conversions(plan.cluster, plan.meshes[0_m]);
  std::map<std::string, std::string> words;
  for (const ValueIndex sum : sums_of_gradients(graph))
    words[value_of(graph, sum).name] = synchronisation_text(placement, 0_m, conversions, sum);
  return words;
}

TEST(PlanChoices, OfferEachParameterTheWaysThatItsOperatorsHave) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  std::map<std::string, std::vector<std::string>> words;
  for (const Gene& gene : of.choices.genes()) words[gene.name] = gene.words;
  const std::vector<std::string> sums{"all-reduce", "zero-1", "zero-2", "zero-3"};
  EXPECT_EQ(words.at("block.0.norm1.gain"), sums);
  EXPECT_EQ(words.at("block.1.up"),
            (std::vector<std::string>{"all-reduce", "zero-1", "zero-2", "zero-3", "factors"}));
  EXPECT_FALSE(words.contains("words")) << "embedding and head share it";
  EXPECT_EQ(words.at("overlap"), (std::vector<std::string>{"none", "transfers", "all"}));
}

TEST(PlanChoices, AreSynchronisedAsTheySay) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  const auto of_up = [&](const char* way) {
    return ways_in_words(of.choices.plan_of(all_in(of.choices, way)), of.graph).at("block.0.up.gradient");
  };
  EXPECT_EQ(of_up("all-reduce"), "all-reduce over 4 devices (axis 0)");
  EXPECT_EQ(of_up("zero-1"), "reduce-scatter over 4 devices (axis 0)");
  EXPECT_EQ(of_up("zero-2"), "reduce-scatter over 4 devices (axis 0), in each micro-batch");
  EXPECT_EQ(of_up("factors"), "made by all 4 devices of gathered factors (axis 0)");
}

TEST(PlanChoices, AreWhatAConstraintOfThatWayAsksAndOfNoOther) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  const std::vector<const char*> ways{"all-reduce", "zero-1", "zero-2", "zero-3", "factors"};
  for (const char* chosen : ways) {
    const Plan plan = of.choices.plan_of(all_in(of.choices, chosen));
    for (const char* asked : ways) {
      const PlanConstraints constraints = parse_constraints(
          fmt::format("[[gradient]]\nname = \"block.*.up\"\nway = \"{}\"", asked), "limits.toml");
      EXPECT_EQ(unmet_constraints(constraints, plan, of.graph).empty(), std::string(asked) == chosen)
          << asked << " of " << chosen;
    }
  }
}

// The planner chooses the dimension that is split by what that costs, here it is the first that can be; so
// steps may differ by what packing and small tiles cost, arenas by how parts are rounded up.
TEST(PlanChoices, TakeAsLongAsWhatThePlannerFinds) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  for (const auto& [way, method] : std::map<std::string, std::string>{{"all-reduce", "data-parallel"},
                                                                      {"zero-1", "zero-1"},
                                                                      {"zero-2", "zero-2"},
                                                                      {"zero-3", "zero-3"}}) {
    const Plan planned = planned_by(method, 2);
    const Assessment assessed = of.choices.assess(all_in(of.choices, way));
    EXPECT_NEAR(assessed.predicted_s / planned.prediction.step_s, 1, 0.1) << way;
    EXPECT_NEAR(static_cast<double>(assessed.memory_bytes) /
                    static_cast<double>(planned.prediction.meshes[0_m].memory.total),
                1, 0.1)
        << way;
  }
}

TEST(PlanChoices, BeginWithThePlanItself) {
  for (const char* method : {"data-parallel", "zero-1", "zero-2", "zero-3", "poseidon"}) {
    Plan plan = planned_by(method, 2);
    const Graph graph = two_blocks(4);
    const CostModel costs(plan.cluster);
    const PlanChoices choices(plan, graph, costs);
    const NamedChoice first = choices.presets().front();
    EXPECT_EQ(first.name, "as planned");
    Plan again = choices.plan_of(first.choice);
    again.prediction = plan.prediction;
    EXPECT_EQ(again, plan) << method;
    EXPECT_DOUBLE_EQ(choices.assess(first.choice).predicted_s, plan.prediction.step_s) << method;
  }
}

TEST(PlanChoices, KeepBucketsAndTurnsAsPlanned) {
  PlannerOptions options;
  options.preset = "bytescheduler";
  options.micro_batches = 2;
  Plan plan = plan_quietly(small_model(), small_cluster(4), with_preset(options));
  ASSERT_FALSE(plan.sync.empty());
  const Graph graph = two_blocks(4);
  const CostModel costs(plan.cluster);
  const PlanChoices choices(plan, graph, costs);
  TuningChoice choice = choices.presets().front().choice;
  EXPECT_EQ(choices.plan_of(choice).sync, plan.sync);
  choice[3] = 1;
  EXPECT_EQ(choices.plan_of(choice).sync.size(), plan.sync.size() - 1);
  EXPECT_NO_THROW(check_plan(choices.plan_of(choice), graph));
}

/// Every choice is a plan of the model whose program is sound, wherever data is split and however else.
TEST(PlanChoices, AreSoundPlansInAnyMixture) {
  std::vector<Lowered> plans;
  plans.push_back({planned_by("data-parallel", 2), two_blocks(4), {}});
  plans.push_back({planned_by("zero-3", 2), two_blocks(4), {}});
  plans.push_back(two_stages_of_two());
  plans.push_back(pinned(R"(
[[stage]]
layers = 4
mesh = [2, 2]
axes = ["data", "tensor"]
)"));
  plans.push_back(pinned(R"(
[[stage]]
layers = 4
mesh = [2, 2]
axes = ["data", "data"]
)"));
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = plans[p].plan;
    const Graph& graph = plans[p].graph;
    const CostModel costs(plan.cluster);
    const PlanChoices choices(plan, graph, costs);
    ASSERT_GT(choices.genes().size(), 10u) << p;
    for (std::uint64_t drawn = 0; drawn < 12; ++drawn) {
      TuningChoice choice;
      for (std::size_t g = 0; g < choices.genes().size(); ++g)
        choice.push_back(static_cast<int>(philox_uniform_at(p, drawn, g) *
                                          static_cast<float>(choices.genes()[g].words.size())));
      const Plan mixed = choices.plan_of(choice);
      EXPECT_NO_THROW(check_plan(mixed, graph)) << p << " " << drawn;
      EXPECT_NO_THROW(verify(lower(graph, mixed))) << p << " " << drawn;
      EXPECT_GT(choices.assess(choice).predicted_s, 0);
    }
  }
}

/// Two products under that optimizer.
Graph updated_by(OptimizerKind optimizer, std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  g.begin_layer("layer");
  ValueIndex x = g.add("gelu", {g.input(InputKind::data, {DType::f32, {samples, 8}}, "x")});
  for (const char* name : {"a", "b"}) x = g.add("gelu", {linear(g, x, name)});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  TrainingOptions options;
  options.optimizer = optimizer;
  return training_graph(g.finish(), op_catalog(), options);
}

TEST(PlanChoices, ShardNothingOfAnOptimizerOfSeveralSteps) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adafactor}) {
    const Tunable of([optimizer](std::int64_t samples) { return updated_by(optimizer, samples); }, 8,
                     small_cluster(4));
    const std::vector<std::string> words = of.choices.genes()[0].words;
    EXPECT_EQ(std::ranges::count(words, "zero-1"), optimizer == OptimizerKind::sgd ? 1 : 0);
    for (const char* way : {"all-reduce", "zero-1", "factors"}) {
      const Plan plan = of.choices.plan_of(all_in(of.choices, way));
      EXPECT_NO_THROW(check_plan(plan, of.graph)) << way;
      EXPECT_NO_THROW(verify(lower(of.graph, plan))) << way;
    }
  }
}

TEST(PlanChoices, KeepOwnersWhereUpdatesCanHaveThem) {
  PlannerOptions options;
  options.preset = "partitioned-ps";
  options.micro_batches = 2;
  const Plan plan = plan_quietly(small_model(), small_cluster(4), with_preset(options));
  const Graph graph = two_blocks(4);
  const CostModel costs(plan.cluster);
  const PlanChoices choices(plan, graph, costs);
  const auto owned_in = [](const Plan& of) {
    return std::ranges::count_if(of.sync, [](const GradientSync& sync) { return !sync.owners.empty(); });
  };
  ASSERT_GT(owned_in(plan), 0);
  const TuningChoice as_planned = choices.presets().front().choice;
  EXPECT_EQ(choices.plan_of(as_planned).sync, plan.sync);
  for (std::size_t g = 0; g < as_planned.size(); ++g)
    for (int word = 0; word < static_cast<int>(choices.genes()[g].words.size()); ++word) {
      TuningChoice choice = as_planned;
      choice[g] = word;
      const Plan other = choices.plan_of(choice);
      EXPECT_NO_THROW(check_plan(other, graph)) << choices.genes()[g].name << " " << word;
      EXPECT_NO_THROW(verify(lower(graph, other))) << choices.genes()[g].name << " " << word;
      const auto all = owned_in(plan), kept = owned_in(other);
      const bool is_other_way = g < choices.ways().variables().size() && word != as_planned[g];
      const std::string& name = choices.genes()[g].name;
      const bool has_none = other.updates != UpdateOrder::after_norm ||
                            (name == "owners" && choices.genes()[g].words[word] == "none");
      EXPECT_EQ(kept, has_none ? 0 : all - is_other_way) << name << " " << word;
    }
}

TEST(PlanChoices, HaveOwnersByEveryRuleWhereNoneWerePlanned) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  const std::vector<Gene>& genes = of.choices.genes();
  const auto owners = std::ranges::find(genes, "owners", &Gene::name);
  EXPECT_EQ(owners->words,
            (std::vector<std::string>{"none", "first", "balanced", "parts", "uneven", "even"}));
  std::map<std::string, TuningChoice> presets;
  for (const NamedChoice& preset : of.choices.presets()) presets[preset.name] = preset.choice;
  const std::map<std::string, OwnerRule> rules{{"ps", OwnerRule::first},
                                               {"ps-balanced", OwnerRule::balanced},
                                               {"partitioned-ps", OwnerRule::parts},
                                               {"uneven-partitioned-ps", OwnerRule::uneven}};
  for (const auto& [name, rule] : rules) {
    const Plan plan = of.choices.plan_of(presets.at(name));
    EXPECT_TRUE(plan.has_owners()) << name;
    EXPECT_EQ(plan.sync, with_owners(plan, GraphUses(of.graph), rule)) << name;
    EXPECT_EQ(of.choices.assess(presets.at(name)).fault, "") << name;
  }
}

TEST(PlanChoices, AreNoneOfAPlanForOneDevice) {
  const Tunable of(two_blocks, 8, small_cluster(1));
  std::vector<std::string> names;
  for (const Gene& gene : of.choices.genes()) names.push_back(gene.name);
  EXPECT_EQ(names, (std::vector<std::string>{"buckets", "order", "owners", "overlap", "updates"}));
  EXPECT_GT(of.choices.assess(of.choices.presets().front().choice).predicted_s, 0);
}

TEST(PlanChoices, SayWhatDoesNotFit) {
  Plan plan = planned_by("zero-3", 2);
  const Graph graph = two_blocks(4);
  plan.cluster.memory_bytes = plan.prediction.meshes[0_m].memory.total;
  const CostModel costs(plan.cluster);
  const PlanChoices choices(plan, graph, costs);
  EXPECT_EQ(choices.assess(choices.presets().front().choice).fault, "");
  EXPECT_THAT(choices.assess(all_in(choices, "all-reduce")).fault, testing::StartsWith("takes "));
}

TEST(PlanChoices, AreTheSameWhereTheyComeToTheSame) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  TuningChoice one = all_in(of.choices, "zero-1"), each = one;
  one[one.size() - 5] = 3;  // of what sums are left a bucket has nothing but the tied weights'
  EXPECT_EQ(of.choices.genes()[one.size() - 5].name, "buckets");
  EXPECT_EQ(of.choices.assess(one).identity, of.choices.assess(each).identity);
  EXPECT_NE(of.choices.assess(all_in(of.choices, "zero-2")).identity, of.choices.assess(each).identity);
}

TEST(PlanChoices, HaveAFeatureForEachName) {
  const Tunable of(two_blocks, 8, small_cluster(4), 2);
  const TuningSpace space = of.choices.space();
  for (const NamedChoice& preset : space.presets)
    EXPECT_EQ(space.assess(preset.choice).features.size(), space.features.size());
}

}  // namespace
}  // namespace alpa
