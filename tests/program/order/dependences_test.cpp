#include "libalpa/program/order/dependences.h"

#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "libalpa/base/error.h"
#include "libalpa/program/order/verify.h"
#include "tests/program/naive_order.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

/// What follows of an order, run by run: [vertex] all that is surely done before it starts.
class Closure {
 public:
  Closure(const UnrolledStep& step, const std::vector<Dependences>& waits) : step_(step) {
    std::map<std::tuple<std::size_t, std::size_t, std::size_t, int>, std::size_t> at;
    for (std::size_t v = 0; v < step_.vertices.size(); ++v) {
      const auto& x = step_.vertices[v];
      at[{x.mesh, x.segment, x.instruction, x.micro_batch}] = v;
    }
    before_.assign(step_.vertices.size(), std::vector<std::uint64_t>(step_.vertices.size() / 64 + 1));
    std::map<std::pair<std::size_t, int>, std::size_t> in_lane;
    for (std::size_t v = 0; v < step_.vertices.size(); ++v) {
      const auto& x = step_.vertices[v];
      const auto add = [&](std::size_t other) {
        before_[v][other / 64] |= std::uint64_t{1} << other % 64;
        for (std::size_t w = 0; w < before_[v].size(); ++w) before_[v][w] |= before_[other][w];
      };
      const auto [last, first] = in_lane.insert({{x.mesh, step_.of(v).lane}, v});
      if (!first) add(last->second);
      last->second = v;
      for (const Dependence& wait : waits[x.mesh][x.segment][x.instruction]) {
        if (wait.occasion == Occasion::left) continue;
        const auto segment = static_cast<std::size_t>(wait.segment),
                   instruction = static_cast<std::size_t>(wait.instruction);
        if (wait.occasion == Occasion::latest) {
          for (std::size_t u = v; u-- > 0;)
            if (step_.vertices[u].mesh == x.mesh && step_.vertices[u].segment == segment &&
                step_.vertices[u].instruction == instruction && step_.vertices[u].run < x.run) {
              add(u);
              break;
            }
          continue;
        }
        const auto found = at.find({x.mesh, segment, instruction, x.micro_batch - wait.lag});
        if (found != at.end()) add(found->second);
      }
    }
  }

  bool before(std::size_t first, std::size_t then) const {
    return before_[then][first / 64] >> first % 64 & 1;
  }
  bool operator==(const Closure& other) const { return before_ == other.before_; }

 private:
  const UnrolledStep& step_;
  std::vector<std::vector<std::uint64_t>> before_;  ///< [vertex] bits of those before it
};

std::vector<Lowered> programs() {
  std::vector<Lowered> all;
  for (const std::string& schedule : schedule_names(1)) all.push_back(two_stages_of_two(4, schedule));
  all.push_back(four_stages("1f1b"));
  all.push_back(ring_of_four());
  all.push_back(on_meshes("interleaved", {0, 1, 0, 1}));
  all.push_back(on_meshes("v-half", {0, 1, 1, 0}));
  return all;
}

TEST(Dependences, OrderWhateverAPairOfRunsDoesToTheSameSlot) {
  for (const Lowered& lowered : programs()) {
    const UnrolledStep step(lowered.program, Overlap::all);
    const Closure order(step, dependences(lowered.program));
    std::size_t pairs = 0;
    for (std::size_t v = 0; v < step.vertices.size(); ++v)
      for (const std::size_t first : step.waits_for[v])
        if (step.vertices[first].mesh == step.vertices[v].mesh &&
            !std::holds_alternative<GlobalSum>(step.of(v).body)) {
          ++pairs;
          ASSERT_TRUE(order.before(first, v)) << lowered.plan.schedule;
        }
    EXPECT_GT(pairs, 1000U);
  }
}

// Each entry that the others do not imply is missed by the verifier.
TEST(Dependences, AreAllMissedWhereTheOthersDoNotImplyThem) {
  std::vector<Lowered> some{two_stages_of_two(2, "split-1f1b"), two_stages_of_two(2, "gpipe"),
                            four_stages("1f1b")};
  for (const Lowered& lowered : some) {
    const std::vector<Dependences> whole = dependences(lowered.program);
    const UnrolledStep step(lowered.program, Overlap::all);
    const Closure all(step, whole);
    int missed = 0;
    for (std::size_t m = 0; m < whole.size(); ++m)
      for (std::size_t s = 0; s < whole[m].size(); ++s)
        for (std::size_t i = 0; i < whole[m][s].size(); ++i)
          for (std::size_t d = 0; d < whole[m][s][i].size(); ++d) {
            std::vector<Dependences> lacking = whole;
            const Dependence wait = whole[m][s][i][d];
            lacking[m][s][i].erase(lacking[m][s][i].begin() + static_cast<std::ptrdiff_t>(d));
            bool refused = false;
            try {
              verify(lowered.program, lacking);
            } catch (const Error&) {
              refused = true;
            }
            const bool of_message =
                wait.occasion == Occasion::left && wait.lag < lowered.program.micro_batches &&
                lowered.program.meshes[MeshIndex(m)].segments[s].kind != SegmentKind::update;
            const bool matters = of_message || !(Closure(step, lacking) == all);
            EXPECT_EQ(refused, matters)
                << lowered.plan.schedule << ": mesh " << m << ", segment " << s << ", instruction " << i
                << " waits for " << wait.segment << "." << wait.instruction << ", occasion "
                << static_cast<int>(wait.occasion);
            missed += matters;
          }
    EXPECT_GT(missed, 5);
  }
}

TEST(Dependences, AreNearLinearInTheInstructions) {
  for (const Lowered& lowered : programs())
    for (const MeshProgram& mesh : lowered.program.meshes) {
      std::size_t instructions = 0, entries = 0;
      for (const auto& segment : dependences(mesh))
        for (const auto& waits : segment) {
          ++instructions;
          entries += waits.size();
        }
      EXPECT_LT(entries, 3 * instructions + 200);
    }
}

TEST(RunOrder, GoesThroughLanesAndWhatWaits) {
  MeshProgram mesh;
  mesh.lanes.push_back({LaneKind::collective, 0, {}, {}});
  mesh.buffers.resize(4);
  // 0 and 3 compute, 1 and 2 communicate; 1 reads what 0 writes, 3 reads what 1 writes.
  mesh.segments = {{0_s,
                    SegmentKind::forward,
                    {{Zero{0_b}, 0},
                     {Shift{0, {0_b}, {1_b}}, 1},
                     {Shift{0, {2_b}, {3_b}}, 1},
                     {Compute{0_n, nullptr, {}, {1_b}, {2_b}, {}}, 0}}}};
  mesh.schedule = {{0, 0}};
  const Dependences waits = dependences(mesh);
  const RunOrder order(mesh, waits, 0);
  EXPECT_TRUE(order.before(0, 1));
  EXPECT_TRUE(order.before(0, 2));
  EXPECT_TRUE(order.before(1, 3));
  EXPECT_FALSE(order.before(1, 0));
  EXPECT_TRUE(order.before(2, 3));  // 3 writes what 2 reads
}

}  // namespace
}  // namespace alpa
