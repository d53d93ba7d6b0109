#include "libalpa/profiler/measure.h"

#include <gmock/gmock.h>

#include "libalpa/ops/catalog.h"
#include "tests/profiler/fake_instrument.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OperatorCase case_of(const char* op, std::int64_t size) {
  return OperatorCase::of(op_catalog().find(op), {{DType::f32, {size}}}, {});
}

class Measure : public testing::Test {
 protected:
  Measure() {
    work_.operators = {case_of("gelu", 64), case_of("relu", 64), case_of("silu", 8)};
    work_.collectives = {{CollectiveKind::all_reduce, {1, 2}, 1024}, {CollectiveKind::send, {1, 2}, 1024}};
    known_.cluster = {"c", "CPU", 1, 2, 1 << 30, 1e9, 1e9, 0, 1e9, 1e-6, {1e-6, 1e9}, {1e-6, 1e9}};
    around_.now_s = [this] { return instrument_.clock_s; };
    around_.wants_stop = [this] { return static_cast<int>(instrument_.asked.size()) >= stop_after_; };
    around_.publish = [this](const Profile& profile) {
      published_.push_back(static_cast<int>(profile.operators.size()));
    };
    around_.progress = [this](const MeasureProgress& progress) { progress_.push_back(progress); };
    around_.failed = [this](const std::string& what, const std::string& why) {
      failures_.push_back(what + ": " + why);
    };
  }

  MeasureResult run() { return measure(work_, known_, instrument_, options_, around_); }

  Workload work_;
  Profile known_;
  FakeInstrument instrument_;
  MeasureOptions options_;
  MeasureSurroundings around_;
  int stop_after_ = 1000;
  std::vector<int> published_;
  std::vector<MeasureProgress> progress_;
  std::vector<std::string> failures_;
};

TEST_F(Measure, TakesCollectivesThenOperatorsInTheirOrder) {
  const MeasureResult result = run();
  EXPECT_THAT(instrument_.asked,
              ElementsAre("all-reduce 1024", "send 1024", "gelu f32[64]", "relu f32[64]", "silu f32[8]"));
  EXPECT_EQ(result.measured, 5);
  EXPECT_EQ(result.left, 0);
  EXPECT_FALSE(result.was_stopped);
  EXPECT_EQ(result.profile.operators.at("gelu f32[64]"),
            (OperatorSample{1e-3, 1e-4, 5e-5, 1280, 512, false, SampleStatus::measured, {}}));
  EXPECT_THAT(result.profile.collectives,
              ElementsAre(CollectiveSample{CollectiveKind::all_reduce, {1, 2}, 1024, 1e-4, 1e-5, 5e-6, {}},
                          CollectiveSample{CollectiveKind::send, {1, 2}, 1024, 1e-4, 1e-5, 5e-6, {}}));
}

TEST_F(Measure, KeepsTheMedianAndSpreadOfEachNode) {
  instrument_.ranks = 6;
  instrument_.slowness = {1, 2, 1.5, 3, 3, 3};
  around_.nodes = {0, 1};
  const MeasureResult result = run();
  EXPECT_THAT(result.profile.operators.at("gelu f32[64]").on_nodes,
              ElementsAre(NodeTime{1.5e-3, 5e-5}, NodeTime{3e-3, 5e-5}));
  EXPECT_THAT(result.profile.collectives[0].on_nodes,
              ElementsAre(NodeTime{1.5 * 1e-4, 5e-6}, NodeTime{3 * 1e-4, 5e-6}));
}

TEST_F(Measure, KeepsNothingOfANodeThatTakesNoPart) {
  instrument_.slowness = {1, -1};
  around_.nodes = {0, 1};
  EXPECT_THAT(run().profile.collectives[0].on_nodes, ElementsAre(NodeTime{1e-4, 5e-6}, NodeTime{}));
}

TEST_F(Measure, AddsTheTimesOfOtherNodesBesideThoseKnown) {
  work_.operators.pop_back();
  around_.nodes = {0, 1};
  known_ = run().profile;
  work_.operators.push_back(case_of("silu", 8));
  around_.nodes = {2, 1};
  const MeasureResult result = run();
  EXPECT_THAT(result.profile.operators.at("gelu f32[64]").on_nodes, testing::SizeIs(2));
  EXPECT_THAT(result.profile.operators.at("silu f32[8]").on_nodes,
              ElementsAre(NodeTime{}, NodeTime{1e-3, 5e-5}, NodeTime{1e-3, 5e-5}));
}

TEST_F(Measure, GoesOnWhereItWasStopped) {
  stop_after_ = 3;
  const MeasureResult first = run();
  EXPECT_TRUE(first.was_stopped);
  EXPECT_EQ(first.left, 2);
  stop_after_ = 1000;
  instrument_.asked.clear();
  known_ = first.profile;
  const MeasureResult second = run();
  EXPECT_THAT(instrument_.asked, ElementsAre("relu f32[64]", "silu f32[8]"));
  EXPECT_EQ(second.reused, 3);
  EXPECT_EQ(second.left, 0);
  EXPECT_EQ(second.profile.operators.size(), 3u);
}

TEST_F(Measure, MakesNothingTwiceThatIsKnown) {
  known_ = run().profile;
  instrument_.asked.clear();
  const MeasureResult again = run();
  EXPECT_THAT(instrument_.asked, IsEmpty());
  EXPECT_EQ(again.reused, 5);
  EXPECT_EQ(again.profile.operators, known_.operators);
  EXPECT_EQ(again.profile.collectives, known_.collectives);
}

TEST_F(Measure, SurvivesASampleThatFailsAndTriesItAgainNextTime) {
  instrument_.broken = "relu f32[64]";
  const MeasureResult result = run();
  EXPECT_EQ(result.failed, 1);
  EXPECT_EQ(result.measured, 4);
  EXPECT_THAT(failures_, ElementsAre("relu f32[64]: rank 1: no memory is left"));
  EXPECT_EQ(result.profile.operators.at("relu f32[64]").status, SampleStatus::failed);
  EXPECT_EQ(result.profile.operators.at("silu f32[8]").status, SampleStatus::measured);
  known_ = result.profile;
  instrument_.broken.clear();
  instrument_.asked.clear();
  EXPECT_EQ(run().profile.operators.at("relu f32[64]").status, SampleStatus::measured);
  EXPECT_THAT(instrument_.asked, ElementsAre("relu f32[64]"));
}

TEST_F(Measure, LeavesOutACollectiveThatFails) {
  instrument_.broken = "send 1024";
  EXPECT_EQ(run().profile.collectives.size(), 1u);
  EXPECT_THAT(failures_, ElementsAre("send of 1024 bytes: rank 1: no memory is left"));
}

TEST_F(Measure, TimesTheReferenceBetweenItsGroupsAndAtTheEnd) {
  work_.operators.push_back(case_of("relu", 128));
  work_.operators.push_back(case_of("sigmoid", 8));
  work_.reference = work_.operators.front();
  int asked = 0;
  instrument_.operator_s = [&](const OperatorCase&) { return 1e-3 * ++asked; };
  const Profile profile = run().profile;
  EXPECT_THAT(instrument_.asked,
              ElementsAre("gelu f32[64]", "all-reduce 1024", "send 1024", "gelu f32[64]", "gelu f32[64]",
                          "relu f32[64]", "gelu f32[64]", "silu f32[8]", "gelu f32[64]", "relu f32[128]",
                          "gelu f32[64]", "sigmoid f32[8]", "gelu f32[64]"));
  ASSERT_EQ(profile.reference.size(), 6u);
  EXPECT_EQ(profile.reference[0], (ReferenceSample{"gelu f32[64]", 0, 0, 1e-3, 5e-5}));
  EXPECT_EQ(profile.reference[1], (ReferenceSample{"gelu f32[64]", 0, 2, 2e-3, 1e-4}));
  EXPECT_EQ(profile.operators.at("gelu f32[64]").median_s, 3e-3);  // its own sample, not the reference's
}

TEST_F(Measure, SpendsNotAllOfAShortTimeOnTheReference) {
  work_.reference = work_.operators.front();
  options_.time_budget_s = 1e-3;
  EXPECT_EQ(run().measured, 1);
}

TEST_F(Measure, TimesNoReferenceWhereAllIsKnownAndNumbersTheRunsThatDid) {
  work_.reference = work_.operators.front();
  known_ = run().profile;
  instrument_.asked.clear();
  EXPECT_EQ(run().profile.reference, known_.reference);
  EXPECT_THAT(instrument_.asked, IsEmpty());
  work_.operators.push_back(case_of("relu", 128));
  EXPECT_EQ(run().profile.reference.back().run, 1);
}

TEST_F(Measure, EndsWhenItsTimeIsUpWithoutBeingStopped) {
  options_.time_budget_s = 3;  // a sample takes one second of the fake's clock
  const MeasureResult result = run();
  EXPECT_EQ(result.measured, 3);
  EXPECT_EQ(result.left, 2);
  EXPECT_FALSE(result.was_stopped);
}

TEST_F(Measure, EndsWhenAnotherRankWantsToStop) {
  instrument_.another_ranks = 2;
  const MeasureResult result = run();
  EXPECT_TRUE(result.was_stopped);
  EXPECT_EQ(result.left, 5);
}

TEST_F(Measure, PublishesFromTimeToTimeAndAtTheEnd) {
  options_.publish_every_s = 2;
  run();
  EXPECT_THAT(published_, ElementsAre(0, 2, 3));
}

TEST_F(Measure, PrintsHowFarItIsAndHowLongItWillTake) {
  options_.progress_every_s = 2;
  run();
  ASSERT_EQ(progress_.size(), 2u);
  EXPECT_EQ(progress_[0].done, 2);
  EXPECT_EQ(progress_[0].total, 5);
  EXPECT_EQ(progress_[0].elapsed_s, 2);
  EXPECT_NEAR(progress_[0].left_s, 0.03, 1e-3);  // no operator was timed yet: the first guess
  EXPECT_EQ(progress_[1].done, 4);
  EXPECT_NEAR(progress_[1].left_s, 1, 0.01);  // the fake's samples all take a second
}

TEST_F(Measure, OfSomeSignaturesLeavesTheOtherOperatorsOut) {
  work_ = only(work_, {"silu f32[8]", "tanh f32[8]"});
  run();
  EXPECT_THAT(instrument_.asked, ElementsAre("all-reduce 1024", "send 1024", "silu f32[8]"));
}

}  // namespace
}  // namespace alpa
