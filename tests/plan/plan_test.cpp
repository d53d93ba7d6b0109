#include "libalpa/plan/plan.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// One way to spoil a plan, and what the refusal has to name.
struct Spoilt {
  std::string name;
  std::function<void(Plan&, const Graph&)> spoil;
  std::string why;
};

class CheckPlan : public testing::TestWithParam<Spoilt> {
 protected:
  static const Lowered& sound() {
    static const Lowered lowered = two_stages_of_two();
    return lowered;
  }
};

TEST_F(CheckPlan, AcceptsWhatThePlannerMakes) { EXPECT_NO_THROW(check_plan(sound().plan, sound().graph)); }

TEST_P(CheckPlan, RefusesAndNamesTheFault) {
  Plan plan = sound().plan;
  GetParam().spoil(plan, sound().graph);
  EXPECT_THAT([&] { check_plan(plan, sound().graph); }, ThrowsMessage<Error>(HasSubstr(GetParam().why)));
}

int parameter_on_first_stage(const Graph& graph) { return graph.states[0].value; }

INSTANTIATE_TEST_SUITE_P(
    Spoilt, CheckPlan,
    testing::ValuesIn(std::vector<Spoilt>{
        {"OtherModel", [](Plan& p, const Graph&) { p.graph_fingerprint[0] ^= 1; }, "the model's graph is"},
        {"NoStages", [](Plan& p, const Graph&) { p.stages.clear(); }, "no stages"},
        {"NoMicroBatches", [](Plan& p, const Graph&) { p.micro_batches = 0; }, "no micro-batches"},
        {"LayersLeftOut", [](Plan& p, const Graph&) { p.stages[1].end_layer = 3; }, "stages cover 3 of 4 layers"},
        {"LayersTwice", [](Plan& p, const Graph&) { p.stages[1].first_layer = 1; }, "stage 1 starts at layer 1, expected 2"},
        {"EmptyStage", [](Plan& p, const Graph&) { p.stages[0].end_layer = 0; }, "stage 0 starts at layer 0"},
        {"AxisOfOne", [](Plan& p, const Graph&) { p.stages[0].mesh.shape = {2, 1}; }, "mesh axis of 1"},
        {"DeviceBeyondTheCluster", [](Plan& p, const Graph&) { p.stages[1].mesh.first_device = 3; }, "the cluster has 4"},
        {"NegativeDevice", [](Plan& p, const Graph&) { p.stages[1].mesh.first_device = -1; }, "the cluster has 4"},
        {"SharedDevice", [](Plan& p, const Graph&) { p.stages[1].mesh.first_device = 1; }, "stage 1 shares device 1"},
        {"StrategyMissing", [](Plan& p, const Graph&) { p.node_strategy.pop_back(); }, "plan has strategies for"},
        {"StrategyNotAllowed", [](Plan& p, const Graph&) { p.node_strategy[0] = {77}; }, "node 0 (embedding) has a strategy"},
        {"LayoutMissing", [](Plan& p, const Graph&) { p.value_layout.pop_back(); }, "plan has layouts for"},
        {"LayoutThatDoesNotFit",
         [](Plan& p, const Graph& g) { p.value_layout[static_cast<std::size_t>(parameter_on_first_stage(g))] = parse_spec("S3R"); },
         "cannot be laid out as S3R"},
        {"PartialState",
         [](Plan& p, const Graph& g) { p.value_layout[static_cast<std::size_t>(parameter_on_first_stage(g))] = parse_spec("RR+sum0"); },
         "which is partial"},
        {"CrossingTwice", [](Plan& p, const Graph&) { p.crossings.push_back(p.crossings[0]); }, "which does not need it, or twice"},
        {"CrossingOfAnInput", [](Plan& p, const Graph& g) { p.crossings.push_back({g.inputs[0].value, 1, replicated_spec(2)}); }, "which does not need it"},
        {"CrossingToItsOwnStage", [](Plan& p, const Graph& g) { p.crossings[0].to_stage = stage_of_value(p, g, p.crossings[0].value); }, "which does not need it"},
        {"VeryManyMicroBatches", [](Plan& p, const Graph&) { p.micro_batches = 65537; }, "65537 micro-batches, expected at most 65536"},
        {"CrossingMissing", [](Plan& p, const Graph&) { p.crossings.erase(p.crossings.begin()); }, "but never sent there"},
        {"CrossingOfNothing", [](Plan& p, const Graph&) { p.crossings[0].value = 1 << 20; }, "names a stage or value that is not there"},
        {"CrossingToNowhere", [](Plan& p, const Graph&) { p.crossings[0].to_stage = 2; }, "names a stage or value that is not there"},
        {"PartialCrossing", [](Plan& p, const Graph&) { p.crossings[0].layout.partial_sum = 1; }, "cannot cross"}}),
    [](const auto& test) { return test.param.name; });

TEST(StageOfValue, IsThatOfItsProducerOrOfTheUpdateOfAState) {
  const Lowered lowered = two_stages_of_two();
  const Graph& graph = lowered.graph;
  const auto expected = [&](const Value& value) {
    if (value.kind == ValueKind::input) return -1;
    if (value.kind == ValueKind::computed)
      return graph.nodes[static_cast<std::size_t>(value.producer)].layer < 2 ? 0 : 1;
    const bool first = value.name.starts_with("block.0") || value.name.starts_with("table") ||
                       value.name.starts_with("positions");
    return first ? 0 : 1;
  };
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    EXPECT_EQ(stage_of_value(lowered.plan, graph, static_cast<int>(v)), expected(graph.values[v]))
        << graph.values[v].name;
}

}  // namespace
}  // namespace alpa
