#include "libalpa/program/order/simulate.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "libalpa/planner/stage/mesh_costs.h"
#include "tests/program/naive_order.h"
#include "tests/support/device_transfers.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// A simulator of another kind: every run of an instruction is a vertex and starts when the last that it
/// waits for ends (longest path, by recursion).
class LongestPath {
 public:
  LongestPath(const UnrolledStep& step, const Program& program, const CostModel& costs) : step_(step) {
    for (std::size_t v = 0; v < step_.vertices.size(); ++v) {
      const UnrolledStep::Vertex& at = step_.vertices[v];
      const MeshProgram& mesh = step_.mesh(v);
      const bool does = acts(step_.of(v).when, at.micro_batch, program.micro_batches);
      duration_.push_back(
          does ? instruction_seconds(program, mesh, mesh.segments[at.segment], costs)[at.instruction] : 0);
    }
    end_.assign(duration_.size(), -1);
  }

  double step_seconds() {
    double last = 0;
    for (std::size_t v = 0; v < duration_.size(); ++v) last = std::max(last, end_of(v));
    return last;
  }

 private:
  double end_of(std::size_t vertex) {
    double& end = end_[vertex];
    if (end >= 0) return end;
    double start = 0;
    for (const std::size_t other : step_.waits_for[vertex]) start = std::max(start, end_of(other));
    return end = start + duration_[vertex];
  }

  const UnrolledStep& step_;
  std::vector<double> duration_, end_;
};

TEST(Simulator, AgreesWithTheLongestPathThroughWhatWaitsForWhat) {
  for (const std::string& schedule : schedule_names(1))
    for (const int micro_batches : {1, 4}) {
      const Lowered lowered = two_stages_of_two(micro_batches, schedule);
      for (const double bandwidth : {1e6, 1e8, 1e10}) {
        Cluster cluster = small_cluster(4);
        cluster.within_node.bytes_per_s = bandwidth;
        const CostModel costs(cluster);
        for (const auto& [name, overlap, described] : overlap_words()) {
          const double step = simulate(lowered.program, costs, overlap).step_s;
          const UnrolledStep unrolled(lowered.program, overlap);
          EXPECT_NEAR(step, LongestPath(unrolled, lowered.program, costs).step_seconds(), 1e-12 * step)
              << schedule << " " << micro_batches << " " << name;
        }
      }
    }
}

TEST(Simulator, OfMessagesThatWaitForTheirMemoryAgreesToo) {
  Cluster cluster = small_cluster(4);
  cluster.within_node.bytes_per_s = 1e5;
  const CostModel costs(cluster);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Lowered lowered = four_stages(schedule);
    for (const auto& [name, overlap, described] : overlap_words()) {
      const double step = simulate(lowered.program, costs, overlap).step_s;
      const UnrolledStep unrolled(lowered.program, overlap);
      EXPECT_NEAR(step, LongestPath(unrolled, lowered.program, costs).step_seconds(), 1e-12 * step);
    }
  }
}

// What a step takes after others is what lies between the ends of the fourth and the third.
TEST(Simulator, OfStepsThatOverlapEachOtherAgreesToo) {
  const std::string data = "mesh = [2]\naxes = [\"data\"]\n";
  for (const auto& [devices, stages] :
       {std::pair(2, "[[stage]]\nlayers = 3\n" + data),
        std::pair(3, "[[stage]]\nlayers = 2\nmesh = [1]\naxes = []\n[[stage]]\nlayers = 1\n" + data)})
    for (const auto& [bandwidth, clip] :
         {std::pair(1e5, 0.0), {1e6, 0.0}, {1e8, 0.0}, {1e10, 0.0}, {1e6, 1.0}, {1e10, 1.0}}) {
      Cluster cluster = small_cluster(devices);
      cluster.within_node.bytes_per_s = bandwidth;
      const CostModel costs(cluster);
      const Lowered lowered = three_layers_in_next_forward(stages, cluster, Overlap::none, clip);
      ASSERT_TRUE(lowered.program.defers_updates);
      for (const auto& [name, overlap, described] : overlap_words()) {
        const double step = simulate(lowered.program, costs, overlap).step_s;
        const UnrolledStep three(lowered.program, overlap, 3), four(lowered.program, overlap, 4);
        const double end = LongestPath(four, lowered.program, costs).step_seconds();
        EXPECT_NEAR(step, end - LongestPath(three, lowered.program, costs).step_seconds(), 1e-12 * end)
            << stages << " " << name << " " << bandwidth << " " << clip;
      }
    }
}

// What is left of a step is what four take less what three do: nothing is not less than nothing by rounding.
TEST(Simulator, OfStepsThatOverlapEachOtherTakesNoTimeThatIsLessThanNothing) {
  Cluster cluster = small_cluster(2);
  const Lowered lowered =
      three_layers_in_next_forward("[[stage]]\nlayers = 3\nmesh = [2]\naxes = [\"data\"]\n", cluster);
  for (cluster.within_node.bytes_per_s = 1e6; cluster.within_node.bytes_per_s < 1e11;
       cluster.within_node.bytes_per_s *= 1.05) {
    const Timeline timeline = simulate(lowered.program, CostModel(cluster), Overlap::all);
    for (const MeshTime& mesh : timeline.meshes)
      for (const double seconds : {mesh.compute_s, mesh.collective_s, mesh.transfer_s, mesh.idle_s})
        EXPECT_GE(seconds, 0) << cluster.within_node.bytes_per_s;
    for (const HiddenTime& hidden : timeline.hidden) EXPECT_GE(hidden.collective_s, 0);
  }
}

// Every lane's time is seen or hidden, but for what of it is another lane's too.
TEST(Simulator, CountsWhatIsHiddenApartFromWhatIsSeen) {
  const Lowered lowered = two_stages_of_two(4);
  Cluster cluster = small_cluster(4);
  cluster.within_node.bytes_per_s = 1e7;
  const CostModel costs(cluster);
  const Timeline joined = simulate(lowered.program, costs, Overlap::none),
                 apart = simulate(lowered.program, costs, Overlap::all, true);
  double hidden_s = 0;
  for (const MeshIndex m : lowered.program.meshes.indices()) {
    EXPECT_EQ(joined.hidden[m], HiddenTime{});
    hidden_s += apart.hidden[m].collective_s + apart.hidden[m].transfer_s;
    std::map<TimeKind, double> busy;
    for (const TimelineRow& row : apart.rows)
      if (row.mesh == m) busy[row.kind] += row.duration_s;
    const double rounding = 1e-9 * apart.step_s;
    EXPECT_LE(apart.meshes[m].compute_s, busy[TimeKind::compute] + rounding);  // copies count as such too
    EXPECT_LE(apart.meshes[m].collective_s + apart.hidden[m].collective_s,
              busy[TimeKind::collective] + rounding);
    EXPECT_LE(apart.meshes[m].transfer_s + apart.hidden[m].transfer_s, busy[TimeKind::transfer] + rounding);
  }
  EXPECT_GT(hidden_s, 0);
}

// Lanes can only help, and no more than to hide all that the busiest one does not do.
TEST(Simulator, WithLanesApartIsNoSlowerAndNoFasterThanTheBusiestLane) {
  for (const std::string& schedule : schedule_names(1)) {
    const Lowered lowered = two_stages_of_two(4, schedule);
    Cluster cluster = small_cluster(4);
    cluster.within_node.bytes_per_s = 1e7;
    const CostModel costs(cluster);
    const Timeline apart = simulate(lowered.program, costs, Overlap::all, true);
    EXPECT_LE(apart.step_s, simulate(lowered.program, costs, Overlap::none).step_s);
    std::map<std::pair<int, int>, double> busy;
    for (const TimelineRow& row : apart.rows) busy[{row.mesh, row.lane}] += row.duration_s;
    for (const auto& [lane, seconds] : busy) EXPECT_GE(apart.step_s, seconds * (1 - 1e-12));
  }
}

/// Two pairs of meshes, each of which sends so many values once over the same two nodes.
Program two_messages_between_two_nodes(std::array<std::int64_t, 2> values) {
  Program program;
  program.devices_per_node = 2;
  for (int mesh = 0; mesh < 4; ++mesh) {
    const TensorType type{DType::f32, {values.at(static_cast<std::size_t>(mesh) % 2)}};
    MeshProgram one;
    one.mesh = {DeviceIndex(mesh), {}};
    one.buffers.resize(2);
    for (Buffer& buffer : one.buffers) buffer.tile = type;
    one.segments = {{StageIndex(mesh), SegmentKind::forward, {}}};
    if (mesh < 2)
      one.segments[0].instructions.push_back({Send{mesh, 0_b, 1_b}});
    else
      one.segments[0].instructions.push_back({Receive{mesh - 2, 1_b}});
    one.schedule = {{0, 0}};
    program.meshes.push_back(one);
    if (mesh < 2)
      program.transfers.push_back(device_transfer(type, DeviceIndex(mesh), DeviceIndex(mesh + 2)));
  }
  return program;
}

/// Of the only instruction of a mesh.
double seconds_of(const Program& program, MeshIndex mesh, const CostModel& costs) {
  return instruction_seconds(program, program.meshes[mesh], program.meshes[mesh].segments[0], costs)[0];
}

TEST(Simulator, LetsTransfersShareTheInterfacesOfTheirNodes) {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 2;
  const CostModel costs(cluster);
  Program program = two_messages_between_two_nodes({1 << 20, 1 << 20});
  const double one = seconds_of(program, 2_m, costs), packing = seconds_of(program, 0_m, costs);
  EXPECT_NEAR(simulate(program, costs).step_s, packing + 2 * one, 1e-12);
  cluster.nics_per_node = 2;  // one for each device
  EXPECT_NEAR(simulate(program, CostModel(cluster)).step_s, packing + one, 1e-12);
  program.devices_per_node = cluster.devices_per_node = 4;  // all on one node: no interface is taken
  const CostModel together(cluster);
  EXPECT_NEAR(simulate(program, together).step_s, packing + seconds_of(program, 2_m, together), 1e-12);
}

TEST(Simulator, OfTransfersThatShareOneEndOnlyBothTakeLonger) {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 3;
  const CostModel costs(cluster);
  Program program = two_messages_between_two_nodes({1 << 20, 1 << 20});
  const double one = seconds_of(program, 2_m, costs), packing = seconds_of(program, 0_m, costs);
  const auto second_goes = [&](int from, int to) {
    program.meshes[1_m].mesh.first_device = DeviceIndex(from);
    program.meshes[3_m].mesh.first_device = DeviceIndex(to);
    program.transfers[1] = device_transfer(program.transfers[1].whole, DeviceIndex(from), DeviceIndex(to));
    return simulate(program, costs).step_s;
  };
  EXPECT_NEAR(second_goes(1, 4), packing + 2 * one, 1e-12);  // they leave by the same interface
  EXPECT_NEAR(second_goes(4, 3), packing + 2 * one, 1e-12);  // they arrive at the same one
  EXPECT_NEAR(second_goes(3, 1), packing + one, 1e-12);      // against each other: two directions
}

TEST(Simulator, ASmallTransferDoesNotWaitForTheEndOfALargeOne) {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 2;
  const CostModel costs(cluster);
  const Program program = two_messages_between_two_nodes({1 << 20, 1 << 18});
  const double large = seconds_of(program, 2_m, costs), large_begins = seconds_of(program, 0_m, costs),
               small = seconds_of(program, 3_m, costs), small_begins = seconds_of(program, 1_m, costs);
  const double left = small - (large_begins - small_begins);  // of the small one once there are two
  ASSERT_GT(left, 0);
  const Timeline timeline = simulate(program, costs, Overlap::none, true);
  const auto end = [&](MeshIndex mesh) {
    const auto row = std::ranges::find(timeline.rows, mesh, &TimelineRow::mesh);
    return row->start_s + row->duration_s;
  };
  EXPECT_NEAR(end(3_m), large_begins + 2 * left, 1e-12);
  EXPECT_NEAR(end(2_m), small_begins + small + large, 1e-12);  // all the time, one of them or both are sent
  EXPECT_EQ(timeline.step_s, end(2_m));
}

TEST(Simulator, TakesNoTimeForWhatDoesNotActInAMicroBatch) {
  Lowered lowered = two_stages_of_two();
  const CostModel costs(small_cluster(4));
  const std::size_t all = simulate(lowered.program, costs, Overlap::none, true).rows.size();
  for (const When when : {When::first_micro_batch, When::last_micro_batch}) {
    lowered.program.meshes[0_m].segments[0].instructions[0].when = when;
    EXPECT_EQ(simulate(lowered.program, costs, Overlap::none, true).rows.size(), all - 3);
  }
}

TEST(Simulator, EveryMeshsTimesAddUpToTheStep) {
  const Lowered lowered = two_stages_of_two();
  const Timeline apart = simulate(lowered.program, CostModel(small_cluster(4)), Overlap::all);
  for (const MeshTime& time : apart.meshes)  // what hides behind something else is not counted
    EXPECT_NEAR(time.compute_s + time.collective_s + time.transfer_s + time.idle_s, apart.step_s,
                1e-9 * apart.step_s);
  const Timeline timeline = simulate(lowered.program, CostModel(small_cluster(4)), Overlap::none, true);
  for (std::size_t s = 0; s < 2; ++s) {
    const MeshTime& time = timeline.meshes[MeshIndex(s)];
    EXPECT_NEAR(time.compute_s + time.collective_s + time.transfer_s + time.idle_s, timeline.step_s,
                1e-9 * timeline.step_s);
    double rows = 0;
    for (const TimelineRow& row : timeline.rows)
      if (row.mesh == static_cast<int>(s)) rows += row.duration_s;
    EXPECT_NEAR(rows + time.idle_s, timeline.step_s, 1e-9 * timeline.step_s);
  }
}

double attention_seconds(const CostModel& costs, std::int64_t visiting) {
  const std::vector<TensorType> tiles(3, {DType::f32, {8, 2, 4, 4}});
  Attributes attributes{{"causal", std::int64_t{1}}};
  if (visiting) attributes.set("visiting", visiting);
  const OpDef& op = op_catalog().find("attention");
  const OpCall call{tiles, attributes};
  return costs.operator_seconds(
      signature_of(op, call),
      {flops_of(op, call), static_cast<double>(bytes_moved_by(op, call)), DType::f32});
}

// Three visits of keys and values forward, of these and their gradients backward: what the planner's price of
// the attention's strategy is made of.
TEST(Simulator, PricesARingByItsShiftsAndItsCallsOfTheKernel) {
  const Lowered ring = ring_of_four();
  const CostModel costs(small_cluster(4));
  const MeshProgram& stage = ring.program.meshes[0_m];
  std::map<std::string, double> seconds;
  for (const Segment& segment : stage.segments) {
    if (segment.kind == SegmentKind::update) continue;
    const std::vector<double> each = instruction_seconds(ring.program, stage, segment, costs);
    for (std::size_t i = 0; i < each.size(); ++i) {
      const Instruction& instruction = segment.instructions[i];
      const auto* compute = std::get_if<Compute>(&instruction.body);
      if (std::holds_alternative<Shift>(instruction.body) ||
          (compute && compute->op->name.starts_with("attention")))
        seconds[segment_name(segment.kind)] += each[i];
    }
  }
  const MeshCosts prices(ring.graph, {4}, costs);
  std::map<std::string, double> planned;
  for (const NodeIndex n : ring.graph.nodes.indices()) {
    const Node& node = ring.graph.nodes[n];
    if (!node.op->name.starts_with("attention")) continue;
    for (const NodeOption& option : prices.options(n))
      if (option.strategy == ring.plan.node_strategy[n])
        planned[node.phase == Phase::forward ? "forward" : "backward"] += option.seconds;
  }
  EXPECT_NEAR(seconds["forward"], planned["forward"], 1e-9 * planned["forward"]);
  EXPECT_NEAR(seconds["backward"], planned["backward"], 1e-9 * planned["backward"]);
  const double keys_and_values = 2 * 8 * 2 * 16 * 4;  // bytes on one device
  EXPECT_NEAR(seconds["forward"],
              2 * 3 * costs.collective_seconds(CollectiveKind::shift, {1, 4}, keys_and_values, 4) +
                  2 * attention_seconds(costs, 0) + 2 * 3 * attention_seconds(costs, 1),
              1e-9 * planned["forward"]);
}

TEST(Simulator, GivesNoInstructionForNothing) {
  Cluster cluster = small_cluster(4);
  cluster.host_bytes_per_s = 1e9;
  const CostModel costs(cluster);
  std::set<std::size_t> kinds;
  Lowered corrected = two_stages_of_two();
  corrected.plan.updates = UpdateOrder::before_norm;
  corrected.program = lower(corrected.graph, corrected.plan);
  Lowered offloaded = ring_of_four();
  offloaded.plan.on_host = states_of_updates_alone(GraphUses(offloaded.graph));
  offloaded.program = lower(offloaded.graph, offloaded.plan);
  Lowered owned = two_stages_of_two();
  owned.plan.sync = with_owners(owned.plan, GraphUses(owned.graph), OwnerRule::even);
  owned.program = lower(owned.graph, owned.plan);
  Cluster with_servers = small_cluster(1);
  with_servers.nodes = 4;
  with_servers.servers = 2;
  PlannerOptions in_one_sum;
  in_one_sum.sync = "one";
  const Lowered served =
      pinned("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\nstate_sharding = \"none\"\n",
             with_servers, in_one_sum);
  Lowered stale = served;
  stale.plan.sync.clear();
  stale.plan.staleness = 1;
  stale.plan.sync = with_rows_at_servers(stale.plan, GraphUses(stale.graph));
  stale.program = lower(stale.graph, stale.plan);
  for (const Lowered& lowered : {corrected, offloaded, owned, served, stale}) {
    std::vector<MeshProgram> programs(lowered.program.meshes.begin(), lowered.program.meshes.end());
    if (lowered.program.servers) programs.push_back(*lowered.program.servers);
    for (const MeshProgram& stage : programs)
      for (const Segment& segment : stage.segments) {
        const std::vector<double> seconds = instruction_seconds(lowered.program, stage, segment, costs);
        for (std::size_t i = 0; i < seconds.size(); ++i) {
          EXPECT_GT(seconds[i], 0) << instruction_label(segment.instructions[i], lowered.graph);
          kinds.insert(segment.instructions[i].body.index());
        }
      }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<InstructionBody>) << "the programs lack a kind of instruction";
}

// Squared gradient norm, loss, and metrics of the model.
TEST(Simulator, PricesAGlobalSumByTheScalarsInIt) {
  Lowered lowered = two_stages_of_two();
  const CostModel costs(small_cluster(4));
  MeshProgram& stage = lowered.program.meshes[0_m];
  std::vector<Instruction>& update = segment_of_kind(stage, SegmentKind::update).instructions;
  const auto sum = std::ranges::find_if(
      update, [](const Instruction& i) { return std::holds_alternative<GlobalSum>(i.body); });
  ASSERT_NE(sum, update.end());
  const auto seconds = [&] {
    return instruction_seconds(lowered.program, stage, segment_of_kind(stage, SegmentKind::update),
                               costs)[sum - update.begin()];
  };
  EXPECT_DOUBLE_EQ(seconds(), costs.collective_seconds(CollectiveKind::all_reduce, {1, 4}, 8, 4));
  auto& scalars = std::get<GlobalSum>(sum->body).scalars;
  scalars.resize(1000, scalars[0]);
  EXPECT_DOUBLE_EQ(seconds(), costs.collective_seconds(CollectiveKind::all_reduce, {1, 4}, 4000, 4));
}

}  // namespace
}  // namespace alpa
