// Gradients that a file says how to synchronise: what plans of each way have in the stage's program and the
// words of /sync, while other parameters are free.
#include <gmock/gmock.h>

#include <map>

#include "libalpa/base/error.h"
#include "libalpa/plan/facts/plan_facts.h"
#include "libalpa/planner/search/constraints_file.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Data parallelism on four devices, else as the planner likes.
constexpr const char* kSamplesAlone = "most_tensor_parallel = 1\nmost_stages = 1\nmicro_batches = [2]\n";

std::string gradient(const std::string& name, const std::string& way) {
  return "[[gradient]]\nname = \"" + name + "\"\nway = \"" + way + "\"\n";
}

Plan plan_under(const std::string& constraints) {
  PlannerOptions options;
  options.effort = PlannerEffort::quick;
  options.no_constraint_prices = true;
  options.constraints = parse_constraints(constraints, "limits.toml");
  Cluster cluster = small_cluster(4);
  cluster.f32_flops_per_s = 1e9;  // computing everything on every device is no way out
  return plan_quietly(small_model(), cluster, options);
}

/// [parameter] what `/sync` says of its gradient.
std::map<std::string, std::string> words_of(const Plan& plan) {
  const PlanFacts facts = plan_facts(plan, tiny_gpt(plan.micro_batch_samples));
  std::map<std::string, std::string> words;
  for (const LayoutGroup& group : facts.stages[0].tensors.synchronisation)
    for (const std::string& name : group.names)
      words[name] += (words[name].empty() ? "" : "; ") + group.layout;
  return words;
}

struct WayCase {
  const char *way, *said;
  const char* rests = "whole on every device";  ///< the parameter
};

class GradientWays : public testing::TestWithParam<WayCase> {};

TEST_P(GradientWays, AreWhatThePlanSaysOfTheParametersThatHaveThem) {
  const Plan plan = plan_under(kSamplesAlone + gradient("block.*.up", GetParam().way));
  std::map<std::string, std::string> said = words_of(plan), free = words_of(plan_under(kSamplesAlone));
  const std::string asked = "block.*.up.gradient";
  EXPECT_EQ(said.at(asked), GetParam().said);
  const PlanFacts facts = plan_facts(plan, tiny_gpt(plan.micro_batch_samples));
  for (const ParameterGroup& parameter : facts.stages[0].tensors.parameters)
    if (parameter.name == "block.*.up") {
      EXPECT_EQ(parameter.layout, GetParam().rests);
    }
  said.erase(asked), free.erase(asked);
  EXPECT_EQ(said, free) << "others are as they were without";
}

INSTANTIATE_TEST_SUITE_P(
    Words, GradientWays,
    testing::Values(WayCase{"all-reduce", "all-reduce over 4 devices (axis 0), in a bucket"},
                    WayCase{"zero-1", "reduce-scatter over 4 devices (axis 0)"},
                    WayCase{"zero-2", "reduce-scatter over 4 devices (axis 0), in each micro-batch"},
                    WayCase{"zero-3", "reduce-scatter over 4 devices (axis 0), in each micro-batch",
                            "split 4 ways along dimension 0 (axis 0)"},
                    WayCase{"factors", "made by all 4 devices of gathered factors (axis 0)"}),
    [](const auto& way) { return "Way" + std::to_string(way.index); });

TEST(GradientWaysOfOneLayer, AreNotThoseOfLayersThatAreEqualElse) {
  const Plan plan =
      plan_under(kSamplesAlone + gradient("block.0.up", "all-reduce") + gradient("block.1.up", "factors"));
  const Graph graph = tiny_gpt(plan.micro_batch_samples);
  const GraphUses uses(graph);
  for (const State& state : graph.states) {
    if (state.name != "block.0.up" && state.name != "block.1.up") continue;
    const bool is_of_factors = plan.node_strategy[gradient_path(uses, state)->maker] == Strategy{kIdleAxis};
    EXPECT_EQ(is_of_factors, state.name == "block.1.up") << state.name;
  }
}

TEST(GradientWaysOfAFile, MayBeBesideWhatIsSaidOfTheWholePlan) {
  const Plan plan =
      plan_under("overlap = \"all\"\nupdates = \"next-forward\"\nsync = \"each\"\nsync_order = \"ready\"\n" +
                 (kSamplesAlone + gradient("block.*.up", "zero-1")));
  EXPECT_EQ(plan.overlap, Overlap::all);
  EXPECT_EQ(plan.updates, UpdateOrder::next_forward);
  EXPECT_TRUE(plan.sync.empty());
  EXPECT_EQ(words_of(plan).at("block.*.up.gradient"), "reduce-scatter over 4 devices (axis 0)");
}

TEST(GradientWaysOfAFile, AreThoseOfAPinnedPlanToo) {
  PlannerOptions options;
  options.pin = parse_pin("micro_batches = 2\n[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n", "pin");
  options.constraints =
      parse_constraints(gradient("block.0.up", "zero-2") + gradient("block.0.down", "zero-1") +
                            gradient("block.1.*", "all-reduce"),
                        "limits.toml");
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  EXPECT_TRUE(plan.method.starts_with(kPinnedMethod));
  const std::map<std::string, std::string> said = words_of(plan);
  EXPECT_EQ(said.at("block.*.up.gradient"),
            "all-reduce over 4 devices (axis 0), in a bucket; "
            "reduce-scatter over 4 devices (axis 0), in each micro-batch");
  EXPECT_EQ(said.at("block.*.down.gradient"),
            "all-reduce over 4 devices (axis 0), in a bucket; reduce-scatter over 4 devices (axis 0)");
}

TEST(GradientWaysOfAFile, ThatAxesOfAPinDoNotHaveAreRefused) {
  PlannerOptions options;
  options.pin = parse_pin("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n", "pin");
  options.constraints = parse_constraints(gradient("*.up", "factors"), "limits.toml");
  EXPECT_THAT(
      [&] { plan_quietly(small_model(), small_cluster(4), options); },
      ThrowsMessage<Error>(HasSubstr("no plan meets limits.toml:1 (gradients of '*.up' by factors)")));
}

TEST(GradientWaysOfAFile, ThatAParameterOfThreeCannotHaveOnFourDevicesAreRefused) {
  PlannerOptions options;
  options.constraints = parse_constraints(gradient("*", "zero-1"), "limits.toml");
  const PlanningModel model{
      "odd", "", 4, [](std::int64_t samples) {
        GraphBuilder g(op_catalog());
        g.graph().samples = samples;
        g.begin_layer("layer");
        const ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 5}}, "x");
        const ValueIndex weight =
            g.state("weight", {DType::f32, {5, 3}}, {Initializer::Kind::normal, 0.1}, true);
        const ValueIndex y = g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}});
        g.graph().loss = g.add("reduce_sum", {g.add("mul", {y, y})});
        return training_graph(g.finish(), op_catalog(), {});
      }};
  EXPECT_THAT([&] { plan_quietly(model, small_cluster(4), options); },
              ThrowsMessage<Error>(HasSubstr(
                  "limits.toml:1: the gradient of 'weight' cannot be synchronised by zero-1: none of its "
                  "dimensions (5 x 3) divides by 2 or 4 devices; 'all-reduce' takes any")));
}

}  // namespace
}  // namespace alpa
