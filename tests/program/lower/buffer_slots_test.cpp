#include "libalpa/program/lower/buffer_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "libalpa/base/error.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

constexpr std::int64_t kTileBytes = 256;  ///< of the layers below: 64, rounded up

/// Equal layers of a product, its GELU and another product.
Graph equal_layers(std::int64_t samples, int layers) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  for (int l = 0; l < layers; ++l) {
    const std::string name = "layer." + std::to_string(l);
    g.begin_layer(name);
    x = linear(g, g.add("gelu", {linear(g, x, name + ".up")}), name + ".down");
  }
  g.graph().loss = g.add("reduce_sum", {x});
  return training_graph(g.finish(), op_catalog(), {});
}

/// As many stages of one layer on each mesh, under a schedule that lets them share.
Lowered equal_stages(const PipelineSchedule& schedule, int meshes, int stages_per_mesh, int micro_batches) {
  const int stages = meshes * stages_per_mesh;
  const auto graph = [stages](std::int64_t samples) { return equal_layers(samples, stages); };
  PlannerOptions options;
  std::string pin = "micro_batches = " + std::to_string(micro_batches) + "\nschedule = \"1f1b\"\n";
  for (int s = 0; s < stages; ++s) pin += "[[stage]]\nlayers = 1\nmesh = [1]\naxes = []\n";
  options.pin = parse_pin(pin, "pin");
  Lowered lowered;
  lowered.plan = plan_quietly({"equal", "", 2 * micro_batches, graph}, small_cluster(stages), options);
  lowered.graph = graph(2);
  lowered.plan =
      on_shared_meshes(lowered.plan, lowered.graph, meshes_of_stages(schedule, stages, stages_per_mesh));
  lowered.plan.schedule = schedule.name;
  check_plan(lowered.plan, lowered.graph);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

/// Bytes that are kept for micro-batches at once, counted run by run.
std::int64_t most_kept_bytes(const MeshProgram& mesh) {
  std::vector<std::int64_t> of_run(mesh.schedule.size());
  for (const BufferIndex b : mesh.buffers.indices()) {
    const Buffer& buffer = mesh.buffers[b];
    if (buffer.residence != Residence::micro_batch || buffer.view_of >= 0) continue;
    std::map<int, std::pair<std::size_t, std::size_t>> lives;  // of micro-batches
    for (std::size_t r = 0; r < mesh.schedule.size(); ++r)
      for (const Instruction& instruction : mesh.segment_of(mesh.schedule[r]).instructions)
        for (const BufferIndex touched : buffers_touched(instruction))
          if (mesh.whole(touched) == b)
            lives.insert({mesh.schedule[r].micro_batch, {r, r}}).first->second.second = r;
    for (const auto& [micro_batch, life] : lives)
      for (std::size_t r = life.first; r <= life.second; ++r) of_run[r] += buffer.bytes;
  }
  return std::ranges::max(of_run);
}

std::vector<const PipelineSchedule*> schedules_of_shared_meshes() {
  std::vector<const PipelineSchedule*> all;
  for (const PipelineSchedule& schedule : schedules())
    if (schedule.shares_meshes()) all.push_back(&schedule);
  return all;
}

std::string schedule_name_of(const testing::TestParamInfo<const PipelineSchedule*>& test) {
  std::string name = test.param->name;
  std::ranges::replace(name, '-', '_');
  return name;
}

/// [mesh] its runs.
std::vector<std::vector<StageRun>> orders_of(const Plan& plan) {
  return mesh_orders(find_schedule(plan.schedule), mesh_of_each_stage(plan), plan.micro_batches);
}

class EqualStages : public testing::TestWithParam<const PipelineSchedule*> {};

TEST_P(EqualStages, OfAMeshHaveNoMoreSlotsThanTheyKeepTilesAtOnce) {
  for (const int stages_per_mesh : {2, 3})
    for (const int meshes : {1, 2, 4}) {
      if (!GetParam()->takes(stages_per_mesh)) continue;
      const Lowered lowered = equal_stages(*GetParam(), meshes, stages_per_mesh, 2 * meshes);
      EXPECT_NO_THROW(verify(lowered.program));
      for (const MeshIndex m : lowered.program.meshes.indices()) {
        const MeshProgram& mesh = lowered.program.meshes[m];
        EXPECT_EQ(mesh.memory.activations, most_kept_bytes(mesh))
            << "mesh " << m << " of " << meshes << " with " << stages_per_mesh << " stages each";
        // From the forward on three tiles of a micro-batch are kept, from the backward to the gradients of
        // weights four (what both products take, and the gradients of what they make), in a backward all
        // five; what a stage hands to another of its mesh is kept until that runs.
        const int held = most_in_flight(orders_of(lowered.plan)[m]);
        const Timeline timeline = simulate(lowered.program, CostModel(lowered.plan.cluster));
        EXPECT_EQ(mesh_predictions(lowered.program, timeline)[m].in_flight, held);
        EXPECT_LE(mesh.memory.activations, (held * 4 + 2) * kTileBytes);
      }
    }
}

TEST_P(EqualStages, HaveTheSameSlotsForFewerMicroBatches) {
  Lowered lowered = equal_stages(*GetParam(), 2, 2, 24);
  const MemoryUse memory = lowered.program.meshes[0_m].memory;
  for (const int micro_batches : {8, 12, 24}) {
    set_micro_batches(lowered.program, lowered.plan, micro_batches);
    EXPECT_NO_THROW(verify(lowered.program)) << micro_batches;
    EXPECT_EQ(lowered.program.meshes[0_m].memory, memory);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, EqualStages, testing::ValuesIn(schedules_of_shared_meshes()),
                         schedule_name_of);

// Megatron-LM (arXiv 2205.05198, section 4.3): p (1 + (p - 1) / (p v)) micro-batches of all v stages of a
// mesh.
TEST(Interleaved, KeepsTheActivationsOfTheTextbook) {
  for (const int v : {2, 3})
    for (const int p : {2, 4}) {
      const Program program = equal_stages(find_schedule("interleaved"), p, v, 2 * p).program;
      EXPECT_EQ(program.meshes[0_m].memory.activations, (p * v + p - 1) * 3 * kTileBytes) << p << ", " << v;
    }
}

TEST(BufferSlots, AreTheirOwnWhereAMeshHasOneStage) {
  for (const MeshProgram& mesh : four_stages("1f1b").program.meshes)
    for (const Buffer& buffer : mesh.buffers) {
      EXPECT_TRUE(buffer.slot_of.empty());
      EXPECT_LT(buffer.slots_in, 0);
    }
}

TEST(BufferSlots, OfTwoAtOnceAreFoundByTheVerifier) {
  Program program = equal_stages(find_schedule("interleaved"), 2, 2, 4).program;
  Buffer& buffer =
      *std::ranges::find_if(program.meshes[0_m].buffers, [](const Buffer& b) { return b.slots_in >= 0; });
  std::ranges::fill(buffer.slot_of, 0);
  EXPECT_THROW(verify(program), Error);
  std::ranges::fill(buffer.slot_of, static_cast<int>(buffer.slots));
  EXPECT_THROW(verify(program), Error);
}

}  // namespace
}  // namespace alpa
