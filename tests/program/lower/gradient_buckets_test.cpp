#include "libalpa/planner/gradient_buckets.h"

#include <gtest/gtest.h>

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
    const Lowered each = data_parallel("each", micro_batches), one = data_parallel("one", micro_batches);
    EXPECT_EQ(one.program.meshes[0_m].memory, each.program.meshes[0_m].memory);
    EXPECT_GT(all_reduces(each.program.meshes[0_m]).size(), 10u);
  }
}

TEST(BucketsOfSums, AreAddedUpOnceTheLastOfThemIsThere) {
  Lowered lowered = data_parallel("each", 2);
  const GraphUses uses(lowered.graph);
  set_buckets(lowered.plan, uses, {8192, 1024});
  lowered.plan.overlap = Overlap::all;
  check_plan(lowered.plan, lowered.graph);
  lowered.program = lower(lowered.graph, lowered.plan);
  EXPECT_NO_THROW(verify(lowered.program));
  const std::size_t in_buckets = lowered.plan.sync.size();
  std::size_t buckets = 0;
  for (const GradientSync& sync : lowered.plan.sync)
    buckets = std::max(buckets, static_cast<std::size_t>(sync.bucket) + 1);
  const std::size_t alone = all_reduces(data_parallel("each", 2).program.meshes[0_m]).size() - in_buckets;
  EXPECT_EQ(all_reduces(lowered.program.meshes[0_m]).size(), buckets + alone);
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
