#include "libalpa/plan/placement.h"

#include <gmock/gmock.h>

#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

TEST(Placement, OfAValueIsThatOfItsProducerOrOfTheUpdateOfAState) {
  const Lowered lowered = two_stages_of_two();
  const Graph& graph = lowered.graph;
  const GraphUses uses(graph);
  const Placement placement(lowered.plan, uses);
  const auto expected = [&](const Value& value) {
    if (value.kind == ValueKind::input) return -1;
    if (value.kind == ValueKind::computed) return graph.nodes[value.producer].layer < 2 ? 0 : 1;
    const bool first = value.name.starts_with("block.0") || value.name.starts_with("table") ||
                       value.name.starts_with("positions");
    return first ? 0 : 1;
  };
  for (const ValueIndex v : graph.values.indices())
    EXPECT_EQ(placement.stage_of_value(v), expected(graph.values[v])) << graph.values[v].name;
}

// Stages 0 and 2 on one mesh, 1 and 3 on the other: what the first makes rests on both.
TEST(Placement, KnowsWhereAValueRestsOnEachMesh) {
  const Lowered lowered = on_meshes("1f1b", {0, 1, 0, 1});
  const GraphUses uses(lowered.graph);
  const Placement placement(lowered.plan, uses);
  const ValueIndex first = lowered.graph.nodes[0_n].results[0];
  EXPECT_EQ(placement.mesh_of_value(first), 0);
  EXPECT_EQ(placement.layout_at_rest(first, 0_m), lowered.plan.value_layout[first]);
  const auto transfer = std::ranges::find(lowered.plan.transfers, first, &PlannedTransfer::value);
  ASSERT_NE(transfer, lowered.plan.transfers.end());
  EXPECT_EQ(placement.layout_at_rest(first, 1_m), transfer->layout);
  EXPECT_EQ(placement.layout_at_start(first, 1_s, Phase::forward), transfer->in_segments.forward);
  EXPECT_EQ(placement.layout_at_start(first, 0_s, Phase::forward),
            lowered.plan.segment_layouts[first].forward);
  // Another stage of the mesh that makes it starts from where it rests, and so does every update.
  EXPECT_EQ(placement.layout_at_start(first, 2_s, Phase::forward), placement.layout_at_rest(first, 0_m));
  EXPECT_EQ(placement.layout_at_start(first, 0_s, Phase::update), placement.layout_at_rest(first, 0_m));
}

}  // namespace
}  // namespace alpa
