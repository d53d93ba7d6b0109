#include "libalpa/program/order/step_walk.h"

#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "tests/program/naive_order.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

TEST(RandomOrder, HasEverythingOnceAfterAllThatItWaitsFor) {
  for (const Lowered& lowered : {two_stages_of_two(4, "split-1f1b"), four_stages("1f1b")}) {
    const UnrolledStep step(lowered.program, Overlap::all);
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::size_t> vertex;
    for (std::size_t v = 0; v < step.vertices.size(); ++v)
      vertex[{step.vertices[v].mesh, step.vertices[v].run, step.vertices[v].instruction}] = v;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<Instance> order = random_order(lowered.program, dependences(lowered.program), seed);
      ASSERT_EQ(order.size(), step.vertices.size());
      std::vector<std::size_t> place(order.size(), order.size());
      for (std::size_t p = 0; p < order.size(); ++p)
        place[vertex.at({static_cast<std::size_t>(order[p].mesh), static_cast<std::size_t>(order[p].run),
                         static_cast<std::size_t>(order[p].instruction)})] = p;
      for (std::size_t v = 0; v < place.size(); ++v)
        for (const std::size_t before : step.waits_for[v]) EXPECT_LT(place[before], place[v]);
    }
  }
}

TEST(RandomOrder, IsTheSeeds) {
  const Lowered lowered = two_stages_of_two();
  const auto text = [&](std::uint64_t seed) {
    std::string all;
    for (const Instance& i : random_order(lowered.program, dependences(lowered.program), seed))
      all += std::to_string(i.mesh) + "." + std::to_string(i.run) + "." + std::to_string(i.instruction) + " ";
    return all;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

// A forward's saved value is known of for as long as its micro-batch is in flight.
TEST(RunTable, RemembersAsManyRunsAsAreInFlight) {
  const Lowered lowered = two_stages_of_two(8, "1f1b");
  const MeshProgram& mesh = lowered.program.meshes[0_m];
  const RunTable runs(mesh, 8);
  const int backward = runs.run_of(1, 3);
  EXPECT_EQ(mesh.schedule[backward], (SegmentRun{1, 3}));
  EXPECT_EQ(runs.micro_batch_of({0, 0, Occasion::micro_batch, 0}, backward), 3);
  EXPECT_EQ(runs.micro_batch_of({0, 0, Occasion::latest, 0}, backward), 4);
  EXPECT_EQ(runs.micro_batch_of({0, 0, Occasion::micro_batch, 4}, backward), -1);
  EXPECT_EQ(runs.remembered({0, 0, Occasion::micro_batch, 0}, 1), 2);
  EXPECT_EQ(runs.remembered({0, 0, Occasion::latest, 0}, 1), 1);
  EXPECT_EQ(runs.remembered({1, 0, Occasion::micro_batch, 2}, 0), 1);
  EXPECT_EQ(runs.remembered({0, 0, Occasion::this_run, 0}, 0), 1);
}

}  // namespace
}  // namespace alpa
