#include "libalpa/program/order/trace.h"

#include <gmock/gmock.h>

#include <set>

#include "libalpa/planner/gradient_owners.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/live_memory.h"
#include "libalpa/program/order/straggler.h"
#include "tests/program/trace_faults.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<RankRows> simulated(const Lowered& lowered) {
  return simulated_ranks(lowered.program, CostModel(small_cluster(4)), traced_ranks(lowered.program));
}

nlohmann::json trace_of(const Lowered& lowered, const std::vector<RankRows>& ranks,
                        TimelineKind kind = TimelineKind::planned) {
  return nlohmann::json::parse(chrome_trace(kind, ranks, lowered.program, lowered.graph));
}

std::multiset<std::string> names(const nlohmann::json& trace, const std::string& category) {
  std::multiset<std::string> names;
  for (const nlohmann::json& event : trace.at("traceEvents"))
    if (event.value("cat", "") == category) names.insert(event.at("name"));
  return names;
}

/// What is said of ranks or lanes, as "2 rank 2: ...".
std::vector<std::string> said(const nlohmann::json& trace, const std::string& what,
                              const std::string& member) {
  std::vector<std::string> all;
  for (const nlohmann::json& event : trace.at("traceEvents"))
    if (event.at("name") == what)
      all.push_back(event.at("pid").dump() + " " + event.at("args").at(member).get<std::string>());
  return all;
}

TEST(Trace, HasOneEventPerInstructionThatRunsOnEachRank) {
  const Lowered lowered = two_stages_of_two();
  std::size_t runs = 0;
  for (const MeshProgram& stage : lowered.program.meshes)
    for (const SegmentRun& run : stage.schedule) runs += 2 * stage.segment_of(run).instructions.size();
  const nlohmann::json trace = trace_of(lowered, simulated(lowered));
  std::size_t events = 0;
  for (const char* kind : {"compute", "collective", "transfer"}) events += names(trace, kind).size();
  EXPECT_EQ(events, runs);
  EXPECT_THAT(said(trace, "process_name", "name"),
              ElementsAre("0 rank 0: stage 0 on mesh 2, node 0", "1 rank 1: stage 0 on mesh 2, node 0",
                          "2 rank 2: stage 1 on mesh 2, node 0", "3 rank 3: stage 1 on mesh 2, node 0"));
  EXPECT_THAT(said(trace, "thread_name", "name"), Contains("3 compute"));
}

TEST(Trace, FillsTheStepOfEveryLaneWithWorkAndIdleTime) {
  for (const Overlap overlap : {Overlap::none, Overlap::transfers, Overlap::all}) {
    Lowered lowered = two_stages_of_two(4);
    lowered.plan.overlap = overlap;
    lowered.program = lower(lowered.graph, lowered.plan);
    EXPECT_EQ(trace_faults(trace_of(lowered, simulated(lowered))), "") << overlap_name(overlap);
  }
}

TEST(Trace, NamesIdleTimeByWhatIsWaitedFor) {
  const Lowered lowered = two_stages_of_two(1);
  std::vector<RankRows> ranks = simulated(lowered);
  const std::multiset<std::string> idle = names(trace_of(lowered, ranks), "idle");
  EXPECT_THAT(idle, Contains(testing::MatchesRegex("waits for send [0-9]+ of rank [01]")));
  EXPECT_THAT(idle, Contains(StartsWith("waits for receive ")));
  EXPECT_THAT(idle, Contains("idle")) << "after the last row of a lane nothing is waited for";
}

TEST(Trace, HasRowsOfItsOwnForARankThatOwnsOthers) {
  Lowered lowered = two_stages_of_two();
  lowered.plan.sync = with_owners(lowered.plan, GraphUses(lowered.graph), OwnerRule::first);
  lowered.program = lower(lowered.graph, lowered.plan);
  ASSERT_TRUE(lowered.program.meshes[0_m].has_owners());
  const std::vector<RankRows> ranks = simulated(lowered);
  const auto instructions = [](const RankRows& rank) {
    std::set<std::pair<int, int>> all;
    for (const TimelineRow& row : rank.rows) all.insert({row.segment, row.instruction});
    return all;
  };
  EXPECT_NE(instructions(ranks[0]), instructions(ranks[1]));
  EXPECT_EQ(trace_faults(trace_of(lowered, ranks)), "");
}

TEST(Trace, OfMoreRowsThanOneLooksAtHasARankOfEachMesh) {
  Lowered lowered = two_stages_of_two();
  EXPECT_THAT(traced_ranks(lowered.program), ElementsAre(0, 1, 2, 3));
  std::vector<SegmentRun>& schedule = lowered.program.meshes[0_m].schedule;
  while (schedule.size() < 100'000) schedule.push_back(schedule.front());
  EXPECT_THAT(traced_ranks(lowered.program), ElementsAre(0, 2));
}

// Two rows of a mesh: a buffer of the segment is live from the first that touches it to the last.
TEST(LiveMemory, IsThatOfStatesAndOfWhatIsStillRead) {
  const Lowered lowered = two_stages_of_two(4);
  for (const RankRows& rank : simulated(lowered)) {
    const MeshProgram& mesh = lowered.program.meshes[place_of(lowered.program, rank.rank).mesh];
    std::int64_t states = 0, most = 0;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.residence == Residence::state && buffer.view_of < 0) states += buffer.bytes;
    const std::vector<LiveBytes> live = live_bytes(rank, lowered.program);
    for (const LiveBytes& each : live) {
      EXPECT_GE(each.bytes, states);
      most = std::max(most, each.bytes);
    }
    EXPECT_EQ(live.back().bytes, states) << "nothing else is left of a step";
    EXPECT_LE(most, mesh.memory.total);
    EXPECT_GT(most, mesh.memory.total * 9 / 10) << "little of an arena is never needed";
  }
}

class MeasuredRanks : public testing::Test {
 protected:
  /// Rank 3 takes half as long again to compute, and began as much earlier by its clock.
  std::vector<RankRows> measured() const {
    std::vector<RankRows> ranks = simulated(lowered_);
    for (TimelineRow& row : ranks[3].rows) {
      if (row.kind == TimeKind::compute) row.duration_s *= 1.5;
      row.start_s += 1;
    }
    ranks[3].host = "node02";
    return ranks;
  }
  const Lowered lowered_ = two_stages_of_two();
};

TEST_F(MeasuredRanks, AreBroughtTogetherWhereAllMeet) {
  std::vector<RankRows> ranks = simulated(lowered_), moved = ranks;
  for (TimelineRow& row : moved[2].rows) row.start_s += 5;
  bring_together(moved, lowered_.program);
  double first_s = 1;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t i = 0; i < ranks[r].rows.size(); ++i) {
      first_s = std::min(first_s, moved[r].rows[i].start_s);
      EXPECT_NEAR(moved[r].rows[i].start_s, ranks[r].rows[i].start_s, 1e-12);  // rounding of 5 + s - 5
    }
  EXPECT_EQ(first_s, 0);
}

TEST_F(MeasuredRanks, NameTheSlowestBesideTheOthersOfItsMesh) {
  std::vector<RankWork> work;
  for (const RankRows& rank : measured()) work.push_back({rank.rank, rank.host, computed_s(rank.rows)});
  const std::optional<Straggler> slowest = slowest_rank(work, lowered_.program);
  ASSERT_TRUE(slowest.has_value());
  EXPECT_EQ(slowest->work.rank, 3);
  EXPECT_NEAR(slowest->ratio(), 1.5, 1e-9);
  EXPECT_THAT(straggler_text(*slowest),
              testing::AllOf(StartsWith("rank 3 on node02 computes "),
                             HasSubstr(" a step, 1.50 times as long as the other ranks of its mesh")));
  for (RankWork& each : work) each.computed_s = each.rank == 3 ? 1.03 : 1;
  EXPECT_FALSE(slowest_rank(work, lowered_.program).has_value()) << "that is noise";
  work.resize(1);
  EXPECT_FALSE(slowest_rank(work, lowered_.program).has_value());
}

TEST_F(MeasuredRanks, AreLabelledInATraceWhereTheyWereMeasured) {
  EXPECT_THAT(said(trace_of(lowered_, measured(), TimelineKind::measured), "process_labels", "labels"),
              ElementsAre(StartsWith("3 node02; rank 3 on node02 computes ")));
  EXPECT_THAT(said(trace_of(lowered_, simulated(lowered_)), "process_labels", "labels"), IsEmpty());
}

}  // namespace
}  // namespace alpa
