// Programs of plans whose stages share meshes.
#include <gmock/gmock.h>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

class SharedMeshes : public testing::TestWithParam<std::pair<const PipelineSchedule*, std::vector<int>>> {};

TEST_P(SharedMeshes, HaveSoundPrograms) {
  const auto& [schedule, mesh_of_stage] = GetParam();
  const Lowered lowered = on_meshes(schedule->name, mesh_of_stage);
  EXPECT_NO_THROW(verify(lowered.program));
  EXPECT_NO_THROW(verify(lower(lowered.graph, lowered.plan, Purpose::evaluate)));
  const CostModel costs(lowered.plan.cluster);
  EXPECT_LE(simulate(lowered.program, costs, Overlap::all).step_s,
            simulate(lowered.program, costs, Overlap::none).step_s * (1 + 1e-9));
}

std::string placement_name(const testing::TestParamInfo<SharedMeshes::ParamType>& test) {
  std::string name = test.param.first->name;
  std::ranges::replace(name, '-', '_');
  for (const int mesh : test.param.second) name += "_" + std::to_string(mesh);
  return name;
}

std::vector<SharedMeshes::ParamType> every_schedule_where_it_runs() {
  std::vector<SharedMeshes::ParamType> all;
  for (const PipelineSchedule& schedule : schedules())
    for (const std::vector<int>& meshes : std::vector<std::vector<int>>{
             {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}, {0, 1, 2, 0}, {0, 0, 0, 0}})
      if (runs_on(schedule, meshes)) all.push_back({&schedule, meshes});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Placements, SharedMeshes, testing::ValuesIn(every_schedule_where_it_runs()),
                         placement_name);

/// Two layers, with a dropout between them.
Graph with_dropout(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  g.begin_layer("first");
  const ValueIndex x = linear(g, g.input(InputKind::data, {DType::f32, {samples, 8}}, "x"), "first.weight");
  const ValueIndex dropped = g.add("dropout", {x}, {{"rate", 0.5}, {"stream", std::int64_t{1}}});
  g.begin_layer("second");
  g.graph().loss = g.add("reduce_sum", {linear(g, dropped, "second.weight")});
  return training_graph(g.finish(), op_catalog(), {});
}

TEST(SharedMesh, EvaluatesWhatDoesNothingThenBetweenItsStages) {
  PlannerOptions options;
  options.pin = parse_pin("micro_batches = 4\n[[stage]]\nlayers = 1\n[[stage]]\nlayers = 1\n", "pin");
  const Graph graph = with_dropout(2);
  const Plan plan = on_shared_meshes(
      plan_quietly({"dropout", "", 8, with_dropout}, small_cluster(2), options), graph, {0, 0});
  check_plan(plan, graph);
  EXPECT_NO_THROW(verify(lower(graph, plan)));
  EXPECT_NO_THROW(verify(lower(graph, plan, Purpose::evaluate)));
}

TEST(SharedMesh, NeedsNoMessagesWithinItself) {
  const Program alone = on_meshes("1f1b", {0, 0, 0, 0}).program;
  EXPECT_TRUE(alone.transfers.empty());
  // The value of the first stage is used on the second and fourth: one message brings it to both.
  const Lowered pair = on_meshes("1f1b", {0, 1, 0, 1});
  const int first = pair.graph.nodes[0_n].results[0];
  EXPECT_EQ(std::ranges::count(pair.program.transfers, first, &StageTransfer::value), 1);
}

TEST(SharedMesh, HasAChannelForTheMessagesOfEachTwoStages) {
  const Program program = on_meshes("1f1b", {0, 1, 0, 1}).program;
  for (const StageTransfer& transfer : program.transfers)
    for (const StageTransfer& other : program.transfers) {
      if (transfer.from_mesh != other.from_mesh || transfer.to_mesh != other.to_mesh) continue;
      EXPECT_EQ(transfer.channel == other.channel,
                transfer.from_stage == other.from_stage && transfer.to_stage == other.to_stage);
    }
}

}  // namespace
}  // namespace alpa
