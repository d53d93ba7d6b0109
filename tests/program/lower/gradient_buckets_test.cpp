#include "libalpa/planner/gradient_buckets.h"

#include <gtest/gtest.h>

#include <map>

#include "libalpa/base/error.h"
#include "libalpa/program/order/dependences.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

Lowered data_parallel(const std::string& sync, int micro_batches) {
  PlannerOptions options;
  options.sync = sync;
  return pinned("micro_batches = " + std::to_string(micro_batches) +
                    "\n[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n",
                small_cluster(4), options);
}

/// Of gradients: where they lie.
std::vector<const Convert*> all_reduces(const MeshProgram& mesh) {
  std::vector<const Convert*> found;
  for (const Instruction& instruction : segment_of_kind(mesh, SegmentKind::update).instructions)
    if (const auto* convert = std::get_if<Convert>(&instruction.body);
        convert && convert->step.kind == ConversionKind::all_reduce && convert->from == convert->to)
      found.push_back(convert);
  return found;
}

TEST(BucketsOfSums, AreOneBufferThatOneCollectiveAddsUp) {
  for (const int micro_batches : {1, 2}) {
    const Lowered lowered = data_parallel("one", micro_batches);
    const MeshProgram& mesh = lowered.program.meshes[0_m];
    EXPECT_NO_THROW(verify(lowered.program));
    const std::vector<const Convert*> sums = all_reduces(mesh);
    ASSERT_EQ(sums.size(), 1u);
    EXPECT_EQ(sums[0]->from, sums[0]->to);
    const Buffer& bucket = mesh.buffers[sums[0]->from];
    std::int64_t end = 0;
    std::size_t views = 0;
    for (const Buffer& view : mesh.buffers) {
      if (view.view_of != sums[0]->from) continue;
      EXPECT_EQ(view.view_offset, end);  // side by side
      EXPECT_EQ(view.offset, bucket.offset + end);
      end += view.bytes;
      ++views;
    }
    EXPECT_EQ(end, bucket.bytes);
    EXPECT_EQ(byte_count(bucket.tile), bucket.bytes);
    EXPECT_EQ(views, lowered.plan.sync.size());
  }
}

TEST(BucketsOfSums, TakeNoMemoryBeyondThatOfTheirSums) {
  for (const int micro_batches : {1, 2}) {
    const Lowered one = data_parallel("one", micro_batches);
    Plan plan = one.plan;
    plan.sync.clear();
    const Program each = lower(one.graph, plan);
    EXPECT_EQ(one.program.meshes[0_m].memory, each.meshes[0_m].memory);
    EXPECT_GT(all_reduces(each.meshes[0_m]).size(), 10u);
  }
}

// AutoDist's partitioned all-reduces.
TEST(PartsOfSums, AreAddedUpOneAfterAnotherAndAreAllOfThem) {
  for (const char* const sync : {"parts", "drawn-parts"}) {
    const Lowered lowered = data_parallel(sync, 2);
    EXPECT_NO_THROW(verify(lowered.program));
    const MeshProgram& mesh = lowered.program.meshes[0_m];
    std::map<BufferIndex, std::vector<std::pair<std::int64_t, std::int64_t>>> pieces;  // by what they are of
    for (const Convert* sum : all_reduces(mesh)) {
      EXPECT_EQ(sum->from, sum->to);
      const Buffer& piece = mesh.buffers[sum->from];
      pieces[mesh.whole(sum->from)].emplace_back(piece.view_offset,
                                                 piece.view_offset + byte_count(piece.tile));
    }
    std::size_t in_parts = 0;
    for (const auto& [whole, of] : pieces) {
      const int planned = lowered.plan.sync_of(mesh.buffers[whole].value).parts;
      EXPECT_EQ(std::ssize(of), planned);
      in_parts += planned > 1 ? 1 : 0;
      std::int64_t end = 0;
      for (const auto& [begin, piece_end] : of) {
        EXPECT_EQ(begin, end);
        end = piece_end;
      }
      EXPECT_EQ(end, byte_count(mesh.buffers[whole].tile));
    }
    EXPECT_GT(in_parts, 10u) << sync;
    Plan each = lowered.plan;
    each.sync.clear();
    EXPECT_EQ(mesh.memory, lower(lowered.graph, each).meshes[0_m].memory);
  }
}

TEST(BucketsOfSums, AreAddedUpOnceTheLastOfThemIsThere) {
  Lowered lowered = data_parallel("each", 2);
  lowered.plan.sync = SumsForBuckets(lowered.plan, GraphUses(lowered.graph)).in_buckets({8192, 1024, false});
  lowered.plan.overlap = Overlap::all;
  check_plan(lowered.plan, lowered.graph);
  const Program program = lower(lowered.graph, lowered.plan);
  EXPECT_NO_THROW(verify(program));
  const MeshProgram& mesh = program.meshes[0_m];
  const Dependences waits = dependences(mesh);
  std::size_t buckets = 0;
  for (int s = 0; s < std::ssize(mesh.segments); ++s)
    for (int i = 0; i < std::ssize(mesh.segments[s].instructions); ++i) {
      const auto* sum = std::get_if<Convert>(&mesh.segments[s].instructions[i].body);
      if (sum == nullptr || sum->from != sum->to || mesh.buffers[sum->from].value >= 0) continue;
      ++buckets;
      for (int b = 0; b < std::ssize(mesh.segments); ++b)  // the backward that makes them
        for (int made = 0; made < std::ssize(mesh.segments[b].instructions); ++made) {
          if (b == s) continue;
          const std::vector<BufferIndex> written = buffers_written(mesh.segments[b].instructions[made]);
          const auto is_of_bucket = [&](BufferIndex w) { return mesh.buffers[w].view_of == sum->from; };
          if (std::ranges::none_of(written, is_of_bucket)) continue;
          const auto is_after = [&](const Dependence& wait) {
            return wait.segment == b && wait.instruction >= made;
          };
          EXPECT_TRUE(std::ranges::any_of(waits[s][i], is_after)) << "instruction " << made;
        }
    }
  EXPECT_GT(buckets, 1u);
}

TEST(BucketsOfSums, AreNotReadBeforeAllOfThemAreWritten) {
  Lowered lowered = data_parallel("one", 1);
  MeshProgram& mesh = lowered.program.meshes[0_m];
  const BufferIndex bucket = all_reduces(mesh).front()->from;
  std::vector<Instruction>& backward = segment_of_kind(mesh, SegmentKind::backward).instructions;
  const auto makes_part = std::ranges::find_if(backward, [&](const Instruction& instruction) {
    const std::vector<BufferIndex> written = buffers_written(instruction);
    return std::ranges::any_of(written, [&](BufferIndex b) { return mesh.buffers[b].view_of == bucket; });
  });
  ASSERT_NE(makes_part, backward.end());
  backward.erase(makes_part);
  EXPECT_THROW(verify(lowered.program), Error);
}

TEST(BucketsOfSums, AreNoPartOfAnEvaluation) {
  const Lowered lowered = data_parallel("one", 1);
  const Program evaluation = lower(lowered.graph, lowered.plan, Purpose::evaluate);
  EXPECT_NO_THROW(verify(evaluation));
  for (const Buffer& buffer : evaluation.meshes[0_m].buffers)
    EXPECT_EQ(buffer.name.find("bucket"), std::string::npos);
}

}  // namespace
}  // namespace alpa
