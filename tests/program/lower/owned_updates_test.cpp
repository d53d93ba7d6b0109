#include "libalpa/plan/owned_updates.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/planner/gradient_owners.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/state_tiles.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kDevices = 4;

Lowered owned(OwnerRule rule, const std::string& sync = "one") {
  PlannerOptions options;
  options.sync = sync;
  Lowered lowered =
      pinned("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n", small_cluster(kDevices), options);
  lowered.plan.sync = with_owners(lowered.plan, GraphUses(lowered.graph), rule);
  check_plan(lowered.plan, lowered.graph);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

std::vector<const OwnerCollective*> collectives(const MeshProgram& mesh, bool reduces) {
  std::vector<const OwnerCollective*> found;
  for (const Instruction& instruction : segment_of_kind(mesh, SegmentKind::update).instructions)
    if (const auto* collective = std::get_if<OwnerCollective>(&instruction.body);
        collective && collective->reduces == reduces)
      found.push_back(collective);
  return found;
}

/// [place] Of the sums that have owners, or each parameter's once: tied weights have two sums of one name.
std::vector<std::int64_t> owned_bytes(const Lowered& lowered, bool of_sums) {
  std::vector<std::int64_t> bytes(kDevices);
  std::set<std::string> seen;
  for (const GradientSync& sync : lowered.plan.sync) {
    const Value& sum = value_of(lowered.graph, sync.sum);
    if (!seen.insert(sum.name).second && !of_sums) continue;
    const TensorType& type = sum.type;  // whole on each device
    for (const OwnedRows& part : sync.owners)
      bytes[static_cast<std::size_t>(part.owner)] += byte_count(type) / type.shape[0] * part.rows;
  }
  return bytes;
}

/// [place] Bytes of its tiles of states, which begin at multiples of the alignment.
std::vector<std::int64_t> owned_states(const MeshProgram& mesh) {
  std::vector<std::int64_t> bytes(kDevices);
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.residence == Residence::state && buffer.view_of < 0 && !buffer.owner.is_everybody())
      bytes[static_cast<std::size_t>(buffer.owner.place)] += buffer.bytes;
  return bytes;
}

/// The sums of the table, which is embedding and head.
struct TableSums {
  GradientSync *of_embedding = nullptr, *of_head = nullptr;
};
TableSums sums_of_table(Lowered& lowered) {
  TableSums sums;
  for (GradientSync& sync : lowered.plan.sync)
    if (const Value& sum = value_of(lowered.graph, sync.sum); sum.name == "table.gradient")
      (node_of(lowered.graph, sum.producer).layer == 0 ? sums.of_embedding : sums.of_head) = &sync;
  return sums;
}

class OwnedPrograms : public testing::TestWithParam<OwnerRule> {};

TEST_P(OwnedPrograms, BringEachRowToItsOwnerAndBack) {
  for (const std::string sync : {"each", "one"}) {
    const Lowered lowered = owned(GetParam(), sync);
    EXPECT_NO_THROW(verify(lowered.program));
    const MeshProgram& mesh = lowered.program.meshes[0_m];
    for (const bool reduces : {true, false}) {
      const std::vector<const OwnerCollective*> found = collectives(mesh, reduces);
      EXPECT_TRUE(sync == "each" ? found.size() > 10 : found.size() == 1);
      std::vector<std::int64_t> bytes(kDevices);
      for (const OwnerCollective* collective : found)
        for (const BufferIndex b : collective->owned)
          bytes[static_cast<std::size_t>(mesh.buffers[b].owner.place)] += byte_count(mesh.buffers[b].tile);
      EXPECT_EQ(bytes, owned_bytes(lowered, reduces)) << "parameters are f32 as their gradients are";
    }
  }
}

// AdamW has two moments of each element. Beside what has no owner, the arena has room for the fullest one's.
TEST_P(OwnedPrograms, HaveOptimizerStatesAtOwnersAlone) {
  const Lowered all = owned(OwnerRule::none), lowered = owned(GetParam());
  const std::vector<std::int64_t> moments = owned_states(lowered.program.meshes[0_m]);
  std::int64_t everywhere = 0;
  for (const Buffer& buffer : lowered.program.meshes[0_m].buffers)
    if (buffer.residence == Residence::state && buffer.view_of < 0 && buffer.owner.is_everybody())
      everywhere += buffer.bytes;
  const MemoryUse& memory = lowered.program.meshes[0_m].memory;
  EXPECT_EQ(memory.parameters + memory.optimizer, everywhere + std::ranges::max(moments));
  EXPECT_EQ(memory.parameters, all.program.meshes[0_m].memory.parameters);
  EXPECT_EQ(memory.gradients, all.program.meshes[0_m].memory.gradients);
  std::map<StateIndex, std::int64_t> elements;
  for (const DeviceIndex device : indices_to<DeviceIndex>(kDevices))
    for (const StateTile& tile : state_tiles(lowered.graph, lowered.program, device))
      if (!lowered.program.meshes[0_m].state_parts[tile.state].empty())
        elements[tile.state] += element_count(tile.tile.shape);
  ASSERT_FALSE(elements.empty());
  for (const auto& [state, count] : elements)
    EXPECT_EQ(count, element_count(value_of(lowered.graph, lowered.graph.states[state].value).type.shape));
}

// Its two sums are added up first, each row at its owner too.
TEST_P(OwnedPrograms, HaveMomentsOfTiedWeightsAtOwnersAlone) {
  Lowered lowered = owned(GetParam());
  const TableSums sums = sums_of_table(lowered);
  ASSERT_TRUE(sums.of_embedding && sums.of_head);
  EXPECT_EQ(sums.of_embedding->owners, sums.of_head->owners);
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  int moments = 0;
  for (const StateIndex s : lowered.graph.states.indices())
    if (const State& state = lowered.graph.states[s]; state.name.starts_with("table.")) {
      EXPECT_FALSE(mesh.state_parts[s].empty()) << state.name;
      EXPECT_LT(mesh.state_buffer[s], 0) << state.name;
      ++moments;
    }
  EXPECT_EQ(moments, 2) << "of AdamW";
  std::int64_t rows = 0;
  for (const Instruction& instruction : segment_of_kind(mesh, SegmentKind::update).instructions)
    if (const auto* compute = std::get_if<Compute>(&instruction.body);
        compute && compute->op->name == "add") {
      EXPECT_FALSE(owner_of(mesh, instruction).is_everybody());
      for (const BufferIndex b : {compute->operands[0], compute->operands[1], compute->results[0]})
        EXPECT_EQ(mesh.buffers[b].first_row, rows);
      rows += mesh.buffers[compute->results[0]].tile.shape[0];
    }
  EXPECT_EQ(rows, value_of(lowered.graph, sums.of_head->sum).type.shape[0]);
}

// The backward is done with the embedding's last: the table goes to all with the bucket of that.
TEST_P(OwnedPrograms, MayHaveOneSumOfTiedWeightsInABucketOrBoth) {
  for (const auto& [embedding, head] : {std::pair(true, false), {false, true}, {true, true}}) {
    Lowered lowered = owned(GetParam());
    const TableSums sums = sums_of_table(lowered);
    const int bucket = std::ranges::max(lowered.plan.sync, {}, &GradientSync::bucket).bucket;
    ASSERT_GE(bucket, 0);
    sums.of_embedding->bucket = embedding ? bucket : -1;
    sums.of_head->bucket = head ? bucket : -1;
    lowered.plan.sync = with_owners(lowered.plan, GraphUses(lowered.graph), GetParam());
    check_plan(lowered.plan, lowered.graph);
    lowered.program = lower(lowered.graph, lowered.plan);
    EXPECT_NO_THROW(verify(lowered.program));
    const MeshProgram& mesh = lowered.program.meshes[0_m];
    EXPECT_EQ(collectives(mesh, true).size(), embedding && head ? 1u : 2u);
    EXPECT_EQ(collectives(mesh, false).size(), embedding ? 1u : 2u);
  }
}

// Of the fullest owner alone, beside which others update theirs.
TEST_P(OwnedPrograms, UpdateAsLongAsTheFullestOwnerDoes) {
  const Lowered lowered = owned(GetParam());
  const CostModel costs(lowered.plan.cluster);
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  const Segment& update = segment_of_kind(mesh, SegmentKind::update);
  const std::vector<double> seconds = instruction_seconds(lowered.program, mesh, update, costs);
  const std::vector<std::int64_t> bytes = owned_states(mesh);
  const auto fullest = std::ranges::max_element(bytes) - bytes.begin();
  EXPECT_EQ(mesh.fullest_coordinate(), std::vector<int>{static_cast<int>(fullest)});
  double expected = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (const Owner owner = owner_of(mesh, update.instructions[i]);
        time_kind(update.instructions[i]) == TimeKind::compute &&
        (owner.is_everybody() || owner.place == fullest))
      expected += seconds[i];
  double simulated = 0;
  for (const TimelineRow& row : simulate(lowered.program, costs, true).rows)
    if (mesh.segments[static_cast<std::size_t>(row.segment)].kind == SegmentKind::update &&
        row.kind == TimeKind::compute)
      simulated += row.duration_s;
  EXPECT_NEAR(simulated, expected, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Rules, OwnedPrograms,
                         testing::Values(OwnerRule::first, OwnerRule::balanced, OwnerRule::parts,
                                         OwnerRule::uneven, OwnerRule::searched, OwnerRule::even));

/// A right program until a test breaks it.
class OwnedProgram : public testing::Test {
 protected:
  std::vector<Instruction>& update() { return segment_of_kind(mesh_, SegmentKind::update).instructions; }
  OwnerCollective& collective(bool reduces) {
    return *const_cast<OwnerCollective*>(collectives(mesh_, reduces).front());
  }
  void erase(bool reduces) {
    std::erase_if(update(), [&](const Instruction& instruction) {
      const auto* of = std::get_if<OwnerCollective>(&instruction.body);
      return of && of->reduces == reduces;
    });
  }
  void expect_refused(const std::string& why) {
    EXPECT_THAT([&] { verify(lowered_.program); }, ThrowsMessage<Error>(HasSubstr(why)));
  }

  Lowered lowered_ = owned(OwnerRule::parts);
  MeshProgram& mesh_ = lowered_.program.meshes[0_m];
};

TEST_F(OwnedProgram, IsRefusedWhereParametersStayWithTheirOwners) {
  erase(false);
  expect_refused("ends the step as its owners alone have it");
}

TEST_F(OwnedProgram, IsRefusedWhereSomebodyHasARowTwice) {
  OwnerCollective& reduce = collective(true);
  reduce.owned.push_back(reduce.owned.front());
  expect_refused("have not all of it, or some twice");
}

TEST_F(OwnedProgram, IsRefusedWhereARowHasNoOwner) {
  collective(false).owned.pop_back();
  expect_refused("have not all of it, or some twice");
}

TEST_F(OwnedProgram, IsRefusedWhereAnUpdateIsOfTwoDevices) {
  const auto update_of_part = std::ranges::find_if(update(), [&](const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.body);
    return compute && compute->results.size() > 1 && !owner_of(mesh_, instruction).is_everybody();
  });
  ASSERT_NE(update_of_part, update().end());
  Owner& owner = mesh_.buffers[std::get<Compute>(update_of_part->body).results[1]].owner;
  owner.place = (owner.place + 1) % kDevices;
  expect_refused("touches what two devices own");
}

TEST_F(OwnedProgram, IsRefusedWhereStatesOfOneDeviceShareMemory) {
  std::vector<BufferIndex> of_first;
  for (const BufferIndex b : mesh_.buffers.indices())
    if (mesh_.buffers[b].residence == Residence::state && mesh_.buffers[b].view_of < 0 &&
        mesh_.buffers[b].owner == Owner{0, 0})
      of_first.push_back(b);
  ASSERT_GT(of_first.size(), 1u);
  mesh_.buffers[of_first[1]].offset = mesh_.buffers[of_first[0]].offset;
  expect_refused("share memory");
}

/// A plan that says otherwise than its graph.
class OwnedPlan : public testing::Test {
 protected:
  void expect_refused(const std::string& why) {
    EXPECT_THAT([&] { check_plan(lowered_.plan, lowered_.graph); }, ThrowsMessage<Error>(HasSubstr(why)));
  }
  /// Of a parameter that has one sum.
  GradientSync& first() {
    return *std::ranges::find_if(lowered_.plan.sync, [&](const GradientSync& sync) {
      return !sync.owners.empty() && value_of(lowered_.graph, sync.sum).name != "table.gradient";
    });
  }
  Lowered lowered_ = owned(OwnerRule::first);
};

TEST_F(OwnedPlan, HasEachRowOnce) {
  ++first().owners.front().rows;
  expect_refused("rows of owner 0, expected");
  first().owners.front().rows -= 2;
  expect_refused("rows of the sum of gradients");
}

TEST_F(OwnedPlan, HasOwnersOnItsMesh) {
  first().owners.front().owner = kDevices;
  expect_refused("of owner 4, expected");
}

TEST_F(OwnedPlan, HasBucketsOfWhichAllHaveOwnersOrNone) {
  ASSERT_GE(first().bucket, 0);
  first().owners.clear();
  expect_refused("has sums of gradients with owners and without");
}

TEST_F(OwnedPlan, HasTheSameOwnersOfAllSumsOfTiedWeights) {
  const TableSums sums = sums_of_table(lowered_);
  sums.of_head->owners.front().owner = 1;
  expect_refused("are of one update, and have different owners");
  std::erase_if(lowered_.plan.sync, [&](const GradientSync& sync) { return &sync == sums.of_head; });
  expect_refused("are of one update, and have different owners");
}

TEST_F(OwnedPlan, UpdatesAfterTheNorm) {
  lowered_.plan.updates = UpdateOrder::before_norm;
  expect_refused("has owners, but its update cannot be shared out");
}

}  // namespace
}  // namespace alpa
