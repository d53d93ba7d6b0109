#include "libalpa/program/order/verify.h"

#include <gmock/gmock.h>

#include <set>

#include "libalpa/base/error.h"
#include "libalpa/program/lower/memory.h"
#include "libalpa/program/order/dependences.h"
#include "libalpa/schedule/schedule.h"
#include "tests/support/index_literals.h"
#include "tests/support/lifetimes.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A program of two stages that is right until a test breaks it.
class Verifier : public testing::Test {
 protected:
  MeshProgram& stage(int s) { return lowered_.program.meshes[MeshIndex(s)]; }
  std::vector<Instruction>& segment(int s, SegmentKind kind) {
    return segment_of_kind(stage(s), kind).instructions;
  }

  /// The index of the nth instruction of that kind.
  template <class Kind>
  std::ptrdiff_t find(int s, SegmentKind kind, int nth = 0) {
    const auto& instructions = segment(s, kind);
    for (std::size_t i = 0; i < instructions.size(); ++i)
      if (std::holds_alternative<Kind>(instructions[i].body) && nth-- == 0)
        return static_cast<std::ptrdiff_t>(i);
    ADD_FAILURE() << "no such instruction";
    return 0;
  }

  void expect_refused(const std::string& why) {
    EXPECT_THAT([&] { verify(lowered_.program); }, ThrowsMessage<Error>(HasSubstr(why)));
  }

  Lowered lowered_ = two_stages_of_two();
};

TEST_F(Verifier, PassesWhatLoweringMakes) {
  EXPECT_NO_THROW(verify(lowered_.program));
  for (const std::string& schedule : schedule_names(1))
    for (const int micro_batches : {1, 2, 4, 8}) {
      const Lowered lowered = two_stages_of_two(micro_batches, schedule);
      EXPECT_NO_THROW(verify(lowered.program));
      EXPECT_NO_THROW(verify(lower(lowered.graph, lowered.plan, Purpose::evaluate)));
    }
}

// States of owners along one axis lie where those of another place do, those along the other axis after them.
TEST_F(Verifier, PassesOwnersAlongTwoAxes) {
  PlannerOptions options;
  options.owners = "even";
  const Lowered lowered = pinned(R"(micro_batches = 2
stages_per_mesh = 2
schedule = "interleaved"
[[stage]]
layers = 2
mesh = [2, 2]
axes = ["data", "tensor"]
[[stage]]
layers = 2
mesh = [2, 2]
axes = ["tensor", "data"]
)",
                                 small_cluster(4), options);
  std::set<int> axes;
  for (const Buffer& buffer : lowered.program.meshes[0_m].buffers)
    if (!buffer.owner.is_everybody()) axes.insert(buffer.owner.axis);
  EXPECT_EQ(axes, (std::set<int>{0, 1}));
  EXPECT_NO_THROW(verify(lowered.program));
}

TEST_F(Verifier, RefusesAReadOfWhatNothingWrote) {
  auto& forward = segment(0, SegmentKind::forward);
  forward.erase(forward.begin() + find<Load>(0, SegmentKind::forward));
  expect_refused("mesh 0 is wrong: instruction 0 of the forward of stage 0 of micro-batch 0 reads buffer");
}

// Whichever is left out, something reads what it would have written, or waits for it.
TEST_F(Verifier, RefusesAProgramThatLacksAnyOneInstruction) {
  const Program whole = lowered_.program;
  int tried = 0;
  for (int s = 0; s < 2; ++s)
    for (const SegmentKind kind : {SegmentKind::forward, SegmentKind::backward})
      for (std::size_t i = 0; i < segment_of_kind(whole.meshes[MeshIndex(s)], kind).instructions.size();
           ++i) {
        lowered_.program = whole;
        auto& instructions = segment(s, kind);
        instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_THROW(verify(lowered_.program), Error) << segment_name(kind) << " instruction " << i;
        ++tried;
      }
  EXPECT_GT(tried, 100);
}

TEST_F(Verifier, RefusesBuffersThatShareMemoryWhileBothAreAlive) {
  auto& buffers = stage(1).buffers;
  const auto lives = lifetimes(stage(1), segment(1, SegmentKind::forward));
  for (const BufferIndex a : buffers.indices())
    for (const BufferIndex b : buffers.indices()) {
      if (b <= a) continue;
      const bool scratch =
          buffers[a].residence == Residence::segment && buffers[b].residence == Residence::segment;
      const bool together = lives[a].first >= 0 && lives[b].first >= 0 && lives[a].first <= lives[b].last &&
                            lives[b].first <= lives[a].last;
      if (!scratch || !together) continue;
      buffers[b].offset = buffers[a].offset;
      expect_refused("share memory in forward");
      return;
    }
  FAIL() << "no two buffers are alive together";
}

TEST_F(Verifier, RefusesToPackIntoAMessageThatMayNotHaveLeft) {
  const Lowered lowered = two_stages_of_two(4, "gpipe");
  std::vector<Dependences> order = dependences(lowered.program);
  for (auto& segment : order[0])
    for (auto& waits : segment)
      std::erase_if(waits, [](const Dependence& wait) { return wait.occasion == Occasion::left; });
  EXPECT_THAT([&] { verify(lowered.program, order); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("mesh 0 is wrong: instruction "),
                        HasSubstr(" of the forward of stage 0 of micro-batch 1 packs into memory that its "
                                  "message of micro-batch 0 may not have left"))));
}

TEST_F(Verifier, RefusesScratchOverAState) {
  for (Buffer& buffer : stage(0).buffers)
    if (buffer.residence == Residence::segment) buffer.offset = 0;
  expect_refused("share memory");
}

TEST_F(Verifier, RefusesABufferOutsideTheArena) {
  stage(0).memory.total -= kAlignment;
  expect_refused("outside the arena");
}

TEST_F(Verifier, RefusesAReceiveThatNothingSends) {
  auto& forward = segment(0, SegmentKind::forward);
  forward.erase(forward.begin() + find<Send>(0, SegmentKind::forward));
  expect_refused("mesh 1 is wrong: transfer 1 is sent 0 times and received 4 times");
}

TEST_F(Verifier, RefusesASendThatNothingReceives) {
  auto& backward = segment(0, SegmentKind::backward);
  const auto at = find<Receive>(0, SegmentKind::backward);
  InstructionBody& body = backward[at].body;
  body = Zero{std::get<Receive>(body).packed};
  expect_refused("mesh 1 is wrong: transfer 2 is sent 4 times and received 0 times");
}

TEST_F(Verifier, RefusesStagesThatWaitForEachOther) {
  // Stage 0 wants a gradient before it sends the second micro-batch, stage 1 the second micro-batch before it
  // sends a gradient.
  std::swap(stage(0).schedule, stage(1).schedule);
  for (Buffer& buffer : stage(1).buffers)
    if (buffer.residence == Residence::micro_batch) buffer.slots = 2;
  lay_out(stage(1), lowered_.graph, std::int64_t{1} << 62);
  expect_refused("it waits for ever at instruction 0 of the backward of stage 0 of micro-batch 0");
}

TEST_F(Verifier, RefusesAStageThatLeavesTheGlobalSumOut) {
  auto& update = segment(1, SegmentKind::update);
  const auto at = find<GlobalSum>(1, SegmentKind::update);
  InstructionBody& body = update[at].body;
  body = Zero{std::get<GlobalSum>(body).scalars[0]};
  expect_refused("it waits for ever");
}

TEST_F(Verifier, RefusesMicroBatchesThatShareASlot) {
  for (Buffer& buffer : stage(0).buffers) buffer.slots = 1;
  expect_refused(
      "instruction 0 of the forward of stage 0 of micro-batch 1 comes before instruction 33 of the backward "
      "of stage 0 of micro-batch 0, for which it waits: both micro-batches are in the same slot");
}

TEST_F(Verifier, RefusesASchedulePutOutOfOrder) {
  std::swap(stage(1).schedule[0], stage(1).schedule[1]);
  expect_refused("backward of stage 1 of micro-batch 0 out of turn");
}

TEST_F(Verifier, RefusesAScheduleThatLeavesAMicroBatchOut) {
  auto& schedule = stage(1).schedule;
  std::erase_if(schedule, [](const SegmentRun& run) { return run.micro_batch == 3; });
  expect_refused("leaves forward of stage 1 of micro-batch 3 out");
}

TEST_F(Verifier, RefusesWhatIsPassedOnBeforeItHasCome) {
  std::vector<TransferMessage>& messages = lowered_.program.transfers[1].route.messages;
  messages.push_back(messages[0]);
  messages.back().from = messages[0].to;
  messages.back().after = static_cast<int>(messages.size());
  expect_refused("passes on what comes by");
  messages.back().after = 0;
  messages.back().begin = -1;
  expect_refused("passes on what message 0 does not bring");
}

TEST_F(Verifier, RefusesLanesThatOverlapAndPassOnByOneChannel) {
  Lowered lowered = four_stages("1f1b");
  Program& program = lowered.program;
  for (StageTransfer& transfer : program.transfers) {
    TransferMessage again = transfer.route.messages[0];
    again.from = again.to;
    again.after = 0;
    transfer.route.messages.push_back(again);
  }
  EXPECT_NO_THROW(verify(program));  // in turn all devices go by one order
  program.overlap = Overlap::all;
  EXPECT_THAT([&] { verify(program); },
              ThrowsMessage<Error>(HasSubstr("another lane passes on by channel 0")));
}

TEST_F(Verifier, RefusesCorrectionsThatDoNotComeLast) {
  lowered_.plan.updates = UpdateOrder::before_norm;
  lowered_.program = lower(lowered_.graph, lowered_.plan);
  EXPECT_NO_THROW(verify(lowered_.program));
  const Program right = lowered_.program;
  segment(0, SegmentKind::update)[static_cast<std::size_t>(find<Zero>(0, SegmentKind::update))].when =
      When::norm_binds;
  expect_refused("of the update follows what is where the norm binds");
  lowered_.program = right;
  segment(0, SegmentKind::forward).back().when = When::norm_binds;
  expect_refused("of the forward of stage 0 is out of place where the norm binds");
  lowered_.program = right;
  lowered_.program.corrects_updates = false;
  expect_refused("of the update is out of place where the norm binds");
}

TEST_F(Verifier, RefusesAScheduleWithoutAnUpdate) {
  stage(1).schedule.pop_back();
  expect_refused("does not end with the update");
}

/// A buffer of two views; each is written, then another lane adds up the whole.
struct TwoParts {
  Program program;

  TwoParts() {
    MeshProgram mesh;
    Buffer whole;
    whole.residence = Residence::step;
    whole.bytes = 2 * kAlignment;
    Buffer part = whole;
    part.bytes = kAlignment;
    part.view_of = 0_b;
    mesh.buffers = {whole, part, part};
    mesh.buffers[2_b].view_offset = kAlignment;
    mesh.lanes.push_back({LaneKind::collective, -1, {}, {}});
    mesh.segments = {
        {StageIndex(), SegmentKind::update, {{Zero{1_b}, 0}, {Zero{2_b}, 0}, {GlobalSum{{0_b}, 0_b}, 1}}}};
    mesh.schedule = {{0, -1}};
    lay_out(mesh, Graph{}, 1 << 20);
    program.meshes.push_back(mesh);
  }

  MeshProgram& mesh() { return program.meshes[0_m]; }
  /// With nothing that waits but for the lanes.
  void expect_refused_without_waits(const std::string& why) const {
    std::vector<Dependences> waits = dependences(program);
    for (auto& segment : waits[0])
      for (std::vector<Dependence>& of : segment) of.clear();
    EXPECT_THAT([&] { verify(program, waits); }, ThrowsMessage<Error>(HasSubstr(why)));
  }
};

TEST(Views, LieInWhatTheyAreViewsOfAndWaitAsItDoes) {
  TwoParts parts;
  EXPECT_EQ(parts.mesh().memory.total, 2 * kAlignment);
  EXPECT_EQ(parts.mesh().buffers[2_b].offset, parts.mesh().buffers[0_b].offset + kAlignment);
  verify(parts.program);
  parts.expect_refused_without_waits(
      "instruction 2 of the update reads buffer 0 () while instruction 0 of the update");
}

TEST(Views, ThatDoNotOverlapNeedNotWait) {
  TwoParts parts;
  std::vector<Instruction>& instructions = parts.mesh().segments[0].instructions;
  instructions.pop_back();
  instructions[1].lane = 1;
  std::vector<Dependences> none{{{{}, {}}}};
  verify(parts.program, none);
  parts.mesh().buffers[2_b].offset -= kAlignment / 2;
  parts.expect_refused_without_waits("while instruction 0 of the update may still use it");
}

TEST(Views, ThatAreNoPartAreRefused) {
  TwoParts parts;
  parts.mesh().buffers[2_b].offset += kAlignment;
  EXPECT_THAT([&] { verify(parts.program); }, ThrowsMessage<Error>(HasSubstr("is not part of buffer 0")));
}

TEST(HostMemory, IsAnArenaOfItsOwn) {
  TwoParts parts;
  Buffer host;
  host.residence = Residence::step;
  host.bytes = kAlignment;
  host.space = MemorySpace::host;
  const BufferIndex b = parts.mesh().buffers.push_back(host);
  parts.mesh().segments[0].instructions.push_back({Zero{b}, 0});
  lay_out(parts.mesh(), Graph{}, 1 << 20);
  EXPECT_EQ(parts.mesh().memory.total, 2 * kAlignment);
  EXPECT_EQ(parts.mesh().memory.host, kAlignment);
  EXPECT_EQ(parts.mesh().buffers[b].offset, 0);  // where a buffer of the device is too
  verify(parts.program);
  parts.mesh().buffers[b].offset = kAlignment;
  EXPECT_THAT([&] { verify(parts.program); }, ThrowsMessage<Error>(HasSubstr("lies outside the arena")));
}

}  // namespace
}  // namespace alpa
