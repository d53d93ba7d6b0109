// What is moved between the memories of a device and of its host, and when.
#include <gmock/gmock.h>

#include <set>

#include "libalpa/base/error.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Segment& update_of(const Lowered& lowered) {
  return segment_of_kind(lowered.program.meshes[0_m], SegmentKind::update);
}

/// Fetches that are listed before that many computations with what was fetched.
std::vector<int> updates_before_fetches(const Lowered& lowered) {
  std::vector<int> before;
  int updates = 0;
  for (const Instruction& instruction : update_of(lowered).instructions) {
    if (const auto* compute = std::get_if<Compute>(&instruction.body))
      updates += compute->op->name == std::string_view("adamw");
    if (std::holds_alternative<Fetch>(instruction.body)) before.push_back(updates);
  }
  return before;
}

/// In which tiles are fetched.
std::set<std::int64_t> staging_places(const Lowered& lowered) {
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  std::set<std::int64_t> places;
  for (const Instruction& instruction : update_of(lowered).instructions)
    if (const auto* fetch = std::get_if<Fetch>(&instruction.body))
      places.insert(mesh.buffers[fetch->to].offset);
  return places;
}

constexpr std::int64_t kMoment = 256;  // 8 x 8 in f32, of two for each weight

/// The least that a program takes whose lanes take turns.
std::int64_t least_bytes() {
  Lowered lowered = offloaded_perceptron(1 << 20);
  lowered.plan.overlap = Overlap::none;
  return lower(lowered.graph, lowered.plan).meshes[0_m].memory.total;
}

TEST(Offload, FetchesTwoAtATimeAhead) {
  const Lowered lowered = offloaded_perceptron(1 << 20);
  EXPECT_EQ(updates_before_fetches(lowered), (std::vector{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(staging_places(lowered).size(), 6u);  // there is room for all
}

TEST(Offload, FetchesAtUseWhereThereIsNoRoomAhead) {
  const Lowered lowered = offloaded_perceptron(least_bytes());
  EXPECT_LE(lowered.program.meshes[0_m].memory.total, least_bytes());
  verify(lowered.program);
}

TEST(Offload, KeepsToAnyLimitThatIsEnough) {
  const std::int64_t least = least_bytes(),
                     most = offloaded_perceptron(1 << 20).program.meshes[0_m].memory.total;
  for (std::int64_t limit = least; limit <= most; limit += kMoment) {
    const Lowered lowered = offloaded_perceptron(limit);
    EXPECT_LE(lowered.program.meshes[0_m].memory.total, limit);
    verify(lowered.program);
  }
}

/// Without those of the update's waits for which that holds.
template <class IsLeftOut>
void verify_without(const Lowered& lowered, const IsLeftOut& is_left_out) {
  std::vector<Dependences> order = dependences(lowered.program);
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  for (std::size_t s = 0; s < mesh.segments.size(); ++s)
    for (std::size_t i = 0; i < mesh.segments[s].instructions.size(); ++i)
      std::erase_if(order[0][s][i], [&](const Dependence& wait) {
        return is_left_out(mesh.segments[s].instructions[i],
                           mesh.segments[wait.segment].instructions[wait.instruction]);
      });
  verify(lowered.program, order);
}

TEST(Offload, IsRefusedWhereAnyOfItsWaitsIsMissing) {
  const Lowered lowered = offloaded_perceptron(1 << 20);
  const auto is = [](const Instruction& instruction, LaneKind kind) {
    return kind == LaneKind::fetch     ? std::holds_alternative<Fetch>(instruction.body)
           : kind == LaneKind::offload ? std::holds_alternative<Offload>(instruction.body)
                                       : is_computation(instruction);
  };
  EXPECT_NO_THROW(verify_without(lowered, [](const auto&, const auto&) { return false; }));
  for (const auto& [waits, other] :
       {std::pair(LaneKind::compute, LaneKind::fetch), {LaneKind::offload, LaneKind::compute}})
    EXPECT_THAT(([&, waits = waits, other = other] {
                  verify_without(lowered, [&](const Instruction& now, const Instruction& before) {
                    return is(now, waits) && is(before, other);
                  });
                }),
                ThrowsMessage<Error>(HasSubstr("while instruction")));
}

TEST(Offload, WaitsForTheMemoryThatItTakesOver) {
  Lowered lowered = offloaded_perceptron(1 << 20);
  const std::int64_t all = lowered.program.meshes[0_m].memory.total;
  lowered = offloaded_perceptron(all - kMoment);
  ASSERT_LE(lowered.program.meshes[0_m].memory.total, all - kMoment);
  for (Segment& segment : lowered.program.meshes[0_m].segments)
    for (Instruction& instruction : segment.instructions) instruction.after.clear();
  EXPECT_THAT([&] { verify(lowered.program); }, ThrowsMessage<Error>(HasSubstr("share memory in update")));
}

// By hand: three updates, each with two moments, beside whose moves computation takes next to nothing. In
// turn each is fetched and offloaded. Beside each other fetches follow each other, and offloads each an
// update, whether the third update's are fetched to where the first one's were or not: the last two come at
// the end.
TEST(Offload, TakesWhatItsLanesTake) {
  Lowered lowered = offloaded_perceptron(1 << 20);
  const std::int64_t all = lowered.program.meshes[0_m].memory.total;
  lowered.plan.cluster.host_bytes_per_s = 1e6;
  const CostModel costs(lowered.plan.cluster);
  const double move_s = 1e-6 + 256 / 1e6;
  EXPECT_DOUBLE_EQ(costs.move_seconds(256), move_s);
  Lowered device = lowered;
  device.plan.on_host.clear();
  device.program = lower(device.graph, device.plan);
  const auto step_s = [&](const Program& program, Overlap overlap) {
    return simulate(program, costs, overlap).step_s;
  };
  const double in_turn_s = step_s(device.program, Overlap::none);
  EXPECT_NEAR(step_s(lowered.program, Overlap::none), in_turn_s + 12 * move_s, 1e-12);
  for (const std::int64_t limit : {all, all - 2 * kMoment}) {
    lowered.plan.cluster.memory_bytes = limit;
    const Program program = lower(lowered.graph, lowered.plan);
    EXPECT_LE(program.meshes[0_m].memory.total, limit);
    EXPECT_NEAR(step_s(program, Overlap::all), 8 * move_s, in_turn_s);
  }
}

}  // namespace
}  // namespace alpa
