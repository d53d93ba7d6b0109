#include "libalpa/program/order/step_terms.h"

#include <gtest/gtest.h>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

struct Terms {
  Timeline timeline;
  Indexed<MeshIndex, StepTerms> of_meshes;
};

Terms terms_of(const Lowered& lowered) {
  const CostModel costs(small_cluster(4));
  Terms terms{simulate(lowered.program, costs, Overlap::none, true), {}};
  terms.of_meshes = terms_of_meshes(lowered.program, terms.timeline, costs);
  return terms;
}

/// What rounding leaves of sums of some thousand times.
double rounding(double seconds) { return 1e-10 * seconds; }

/// Of four devices, of which each updates rows of its own.
Lowered updated_by_rows() {
  PlannerOptions options;
  options.owners = "uneven";
  return pinned("[[stage]]\nlayers = 4\nmesh = [4]\naxes = [\"data\"]\n", small_cluster(4), options);
}

TEST(StepTerms, AddUpToTheStep) {
  for (const Lowered& lowered : {two_stages_of_two(4), ring_of_four(), four_stages("1f1b"), updated_by_rows(),
                                 on_meshes("1f1b", {0, 1, 0, 1}), four_stages("zero-bubble")}) {
    const auto [timeline, of_meshes] = terms_of(lowered);
    for (const StepTerms& terms : of_meshes)
      EXPECT_NEAR(terms.total_s(), timeline.step_s, rounding(timeline.step_s));
    EXPECT_NEAR(mean_terms(lowered.program, of_meshes).total_s(), timeline.step_s, rounding(timeline.step_s));
  }
}

// The rows of the timeline are the same instructions, one by one.
TEST(StepTerms, AreTheTimesOfTheInstructionsOfTheirKind) {
  const Lowered lowered = two_stages_of_two(4);
  const auto [timeline, of_meshes] = terms_of(lowered);
  for (const MeshIndex m : of_meshes.indices()) {
    double forward_s = 0, all_reduce_s = 0, transfers_s = 0, update_s = 0, collectives_s = 0;
    for (const TimelineRow& row : timeline.rows) {
      if (row.mesh != m) continue;
      const Segment& segment = lowered.program.meshes[m].segments[static_cast<std::size_t>(row.segment)];
      const Instruction& instruction = segment.instructions[static_cast<std::size_t>(row.instruction)];
      const auto* convert = std::get_if<Convert>(&instruction.body);
      const bool is_once = row.micro_batch < 0 || instruction.when != When::every_micro_batch;
      if (row.kind == TimeKind::collective) collectives_s += row.duration_s;
      if (is_once) update_s += row.duration_s;
      if (is_once) continue;
      if (segment.kind == SegmentKind::forward && row.kind == TimeKind::compute) forward_s += row.duration_s;
      if (row.kind == TimeKind::transfer) transfers_s += row.duration_s;
      if (convert != nullptr && convert->step.kind == ConversionKind::all_reduce)
        all_reduce_s += row.duration_s;
    }
    const StepTerms& terms = of_meshes[m];
    const double near = rounding(timeline.step_s);
    EXPECT_NEAR(terms[StepTerm::forward], forward_s, near);
    EXPECT_NEAR(terms[StepTerm::all_reduce], all_reduce_s, near);
    EXPECT_NEAR(terms[StepTerm::transfers], transfers_s, near);
    EXPECT_NEAR(terms[StepTerm::update] + terms[StepTerm::synchronisation], update_s, near);
    EXPECT_GT(collectives_s, 0);
    EXPECT_EQ(terms[StepTerm::waiting], timeline.meshes[m].idle_s);
  }
  EXPECT_EQ(of_meshes[0_m][StepTerm::all_reduce], 0);  // split by samples: only gradients are summed
  EXPECT_GT(of_meshes[1_m][StepTerm::all_reduce], 0);  // Megatron's
}

TEST(StepTerms, OfARingAreShifts) {
  const auto [timeline, of_meshes] = terms_of(ring_of_four());
  EXPECT_GT(of_meshes[0_m][StepTerm::shift], 0);
  EXPECT_EQ(of_meshes[0_m][StepTerm::transfers], 0);
}

TEST(StepTerms, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const StepTerm term : step_terms()) names.insert(step_term_name(term));
  EXPECT_EQ(names.size(), kStepTerms);
}

}  // namespace
}  // namespace alpa
