#include "libalpa/plan/check_plan.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/planner/gradient_buckets.h"
#include "tests/support/index_literals.h"
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

void put_on_host(Plan& plan, const Graph& graph) {
  plan.on_host = states_of_updates_alone(GraphUses(graph));
  plan.cluster.host_bytes_per_s = 1e9;
}

ValueIndex parameter_on_first_stage(const Graph& graph) { return graph.states[StateIndex(0)].value; }

INSTANTIATE_TEST_SUITE_P(
    Spoilt, CheckPlan,
    testing::ValuesIn(std::vector<Spoilt>{
        {"OtherModel", [](Plan& p, const Graph&) { p.graph_fingerprint[0] ^= 1; }, "the model's graph is"},
        {"NoStages", [](Plan& p, const Graph&) { p.stages.clear(); }, "no stages"},
        {"NoMicroBatches", [](Plan& p, const Graph&) { p.micro_batches = 0; }, "no micro-batches"},
        {"LayersLeftOut", [](Plan& p, const Graph&) { p.stages[1_s].end_layer = 3; }, "stages cover 3 of 4 layers"},
        {"LayersTwice", [](Plan& p, const Graph&) { p.stages[1_s].first_layer = 1; }, "stage 1 starts at layer 1, expected 2"},
        {"EmptyStage", [](Plan& p, const Graph&) { p.stages[0_s].end_layer = 0; }, "stage 0 starts at layer 0"},
        {"AxisOfOne", [](Plan& p, const Graph&) { p.meshes[0_m].shape = {2, 1}; }, "mesh 0 has an axis of 1"},
        {"DeviceBeyondTheCluster", [](Plan& p, const Graph&) { p.meshes[1_m].first_device = 3_d; }, "the cluster has 4"},
        {"NegativeDevice", [](Plan& p, const Graph&) { p.meshes[1_m].first_device = DeviceIndex(-1); }, "the cluster has 4"},
        {"SharedDevice", [](Plan& p, const Graph&) { p.meshes[1_m].first_device = 1_d; }, "mesh 1 shares device 1"},
        {"MeshThatIsNotThere", [](Plan& p, const Graph&) { p.stages[1_s].mesh = 2_m; }, "stage 1 is on mesh 2, the plan has 2"},
        {"MeshWithoutStages", [](Plan& p, const Graph&) { p.stages[1_s].mesh = 0_m; }, "mesh 1 has no stage"},
        {"StrategyMissing", [](Plan& p, const Graph&) { p.node_strategy.pop_back(); }, "plan has strategies for"},
        {"StrategyNotAllowed", [](Plan& p, const Graph&) { p.node_strategy[0_n] = {77}; }, "node 0 (embedding) has a strategy"},
        {"LayoutMissing", [](Plan& p, const Graph&) { p.value_layout.pop_back(); }, "plan has layouts for"},
        {"LayoutThatDoesNotFit",
         [](Plan& p, const Graph& g) { p.value_layout[parameter_on_first_stage(g)] = parse_spec("S3R"); },
         "cannot be laid out as S3R"},
        {"PartialState",
         [](Plan& p, const Graph& g) { p.value_layout[parameter_on_first_stage(g)] = parse_spec("RR+sum0"); },
         "which is partial"},
        {"TransferTwice", [](Plan& p, const Graph&) { p.transfers.push_back(p.transfers[0]); }, "which does not need it, or twice"},
        {"TransferOfAnInput", [](Plan& p, const Graph& g) { p.transfers.push_back({g.inputs[0].value, 1_m, replicated_spec(2), {replicated_spec(2), replicated_spec(2)}}); }, "which does not need it"},
        {"TransferToItsOwnMesh", [](Plan& p, const Graph& g) { p.transfers[0].to_mesh = Placement(p, GraphUses(g)).mesh_of_value(p.transfers[0].value); }, "which does not need it"},
        {"VeryManyMicroBatches", [](Plan& p, const Graph&) { p.micro_batches = 65537; }, "65537 micro-batches, expected at most 65536"},
        {"StateUpdatedInAnotherLayout",
         [](Plan& p, const Graph& g) {
           const State& state = g.states[StateIndex(0)];
           ShardingSpec& next = p.value_layout[state.next];
           next = next == parse_spec("S0R") ? parse_spec("RR") : parse_spec("S0R");
         },
         "is updated in another layout than it rests in"},
        {"TermsOfWhatArrives",
         [](Plan& p, const Graph& g) {
           for (const NodeIndex n : g.nodes.indices())  // the first product of the second stage
             if (g.nodes[n].layer == 2 && g.nodes[n].op->name == std::string_view("add")) {
               p.node_strategy[n] = {kPassPartialAxis};
               return;
             }
         },
         "cannot be turned from "},
        {"SegmentLayoutMissing", [](Plan& p, const Graph&) { p.segment_layouts.pop_back(); }, "plan has layouts for"},
        {"SegmentLayoutThatDoesNotFit",
         [](Plan& p, const Graph& g) { p.segment_layouts[g.nodes[0_n].results[0]].backward = parse_spec("S3RR"); },
         "cannot be laid out as S3RR"},
        {"TermsThatNothingMakes",
         [](Plan& p, const Graph& g) { p.segment_layouts[g.nodes[0_n].results[0]].forward = parse_spec("RRR+max0"); },
         "cannot be turned from "},
        {"InputNotFed", [](Plan& p, const Graph&) { p.inputs.pop_back(); }, "but never fed to it"},
        {"InputFedTwice", [](Plan& p, const Graph&) { p.inputs.push_back(p.inputs[0]); }, "which does not need it, or twice"},
        {"PartialInput", [](Plan& p, const Graph&) { p.inputs[0].in_segments.forward.partial_sum = 1; }, "cannot be laid out as"},
        {"HostWithoutARate", [](Plan& p, const Graph& g) { put_on_host(p, g); p.cluster.host_bytes_per_s = 0; }, "its cluster has no rate at which they are moved"},
        {"HostBesideUpdatesMadeAgain", [](Plan& p, const Graph& g) { put_on_host(p, g); p.updates = UpdateOrder::before_norm; }, "updates may have to be made again"},
        {"TwiceOnTheHost", [](Plan& p, const Graph& g) { put_on_host(p, g); p.on_host.push_back(p.on_host.back()); }, "twice, or out of order"},
        {"ParameterOnTheHost", [](Plan& p, const Graph& g) { put_on_host(p, g); p.on_host = {parameter_on_first_stage(g)}; }, "is neither a state of its update alone"},
        {"NothingOnTheHost", [](Plan& p, const Graph& g) { put_on_host(p, g); p.on_host.push_back(ValueIndex(1 << 20)); }, "is neither a state of its update alone"},
        {"ActivationsOnTheHostWithoutARate",
         [](Plan& p, const Graph&) {
           p.stages[1_s].recomputed_layers = 1;
           p.stages[1_s].recompute_form = RecomputeForm::offload;
         },
         "stage 1 has activations in the host's memory, and its cluster has no rate"},
        {"PartsOfABucket", [](Plan& p, const Graph& g) { p.sync = SumsForBuckets(p, GraphUses(g)).in_buckets(find_buckets("one")); p.sync.front().parts = 2; }, "is added up in 2 parts, which it does not have"},
        {"PartsThatDoNotDivide", [](Plan& p, const Graph& g) { p.sync = SumsForBuckets(p, GraphUses(g)).in_buckets(find_buckets("parts")); p.sync.front().parts = 7; }, "is added up in 7 parts"},
        {"StalenessBeyondTheBound", [](Plan& p, const Graph&) { p.staleness = 17; }, "parameters are 17 steps old, expected at most 16"},
        {"StalenessBelowNone", [](Plan& p, const Graph&) { p.staleness = -2; }, "parameters are -2 steps old"},
        {"StatesAtNoServers", [](Plan& p, const Graph&) { p.staleness = 0; }, "servers hold its states, but it has no servers"},
        {"StatesOfStagesAtServers", [](Plan& p, const Graph&) { p.staleness = 0; p.cluster.servers = 1; }, "servers hold its states, but it has several stages"},
        {"TransferMissing", [](Plan& p, const Graph&) { p.transfers.erase(p.transfers.begin()); }, "but never sent there"},
        {"TransferOfNothing", [](Plan& p, const Graph&) { p.transfers[0].value = ValueIndex(1 << 20); }, "names a mesh or value that is not there"},
        {"TransferToNowhere", [](Plan& p, const Graph&) { p.transfers[0].to_mesh = 2_m; }, "names a mesh or value that is not there"},
        {"PartialTransfer", [](Plan& p, const Graph&) { p.transfers[0].layout.partial_sum = 1; }, "cannot cross"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace alpa
