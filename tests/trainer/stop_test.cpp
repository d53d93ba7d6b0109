#include "libalpa/trainer/stop.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

class Stop : public ::testing::Test {
 protected:
  StopConditions conditions(StopLimits limits = {}, bool looks_at_files = true) {
    return {folder_.path(), limits, request_, looks_at_files, [this] { return now_s_; }};
  }
  void touch(const char* name) { std::ofstream(folder_.path() / name) << ""; }
  bool exists(const char* name) { return std::filesystem::exists(folder_.path() / name); }

  TemporaryFolder folder_;
  StopRequest request_;
  double now_s_ = 1'700'000'000;
};

struct Margin {
  double whole_run_s, step_s, checkpoint_s, margin_s;
};

TEST_F(Stop, MarginCoversAStepTwoSavesAndAMinuteOrAQuarterOfAShortRun) {
  const Margin table[] = {{7200, 1, 10, 81}, {240, 1, 10, 81}, {90, 0.5, 1, 25}, {0, 2, 3, 8}};
  for (const Margin& t : table)
    EXPECT_DOUBLE_EQ(stop_margin_s(t.whole_run_s, t.step_s, t.checkpoint_s), t.margin_s);
}

TEST_F(Stop, NothingStopsARunWithoutLimits) { EXPECT_EQ(conditions().local_reason(1, 1), StopReason::none); }

TEST_F(Stop, TheEndOfTheJobOrTheLongestRunWhicheverIsFirst) {
  const StopLimits table[] = {{now_s_ + 1000, {}}, {{}, 1000}, {now_s_ + 1000, 2000}, {now_s_ + 2000, 1000}};
  for (const StopLimits& limits : table) {
    now_s_ = 1'700'000'000;
    StopConditions stop = conditions(limits, false);
    now_s_ += 1000 - 62 - 1;
    EXPECT_EQ(stop.local_reason(0, 1), StopReason::none);
    now_s_ += 1;
    EXPECT_EQ(stop.local_reason(0, 1), StopReason::end_time);
  }
}

TEST_F(Stop, ARunWhoseTimeIsOverStopsAtOnce) {
  EXPECT_EQ(conditions({now_s_ - 5, {}}).local_reason(0, 0), StopReason::end_time);
}

TEST_F(Stop, TheFileStopEndsTheRunAndStays) {
  touch("STOP");
  touch("SAVE");
  StopConditions stop = conditions();
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::stop_file);
  stop.saved();
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::stop_file);
  EXPECT_TRUE(exists("STOP"));
  EXPECT_FALSE(exists("SAVE"));
}

TEST_F(Stop, TheFileSaveAsksForOneSave) {
  StopConditions stop = conditions();
  touch("SAVE");
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::save_file);
  stop.saved();
  EXPECT_FALSE(exists("SAVE"));
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::none);
}

TEST_F(Stop, FilesAreLookedForNowAndThenByOneRank) {
  StopConditions stop = conditions(), other_rank = conditions({}, false);
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::none);
  touch("STOP");
  now_s_ += 1.9;
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::none);
  now_s_ += 0.2;
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::stop_file);
  EXPECT_EQ(other_rank.local_reason(1, 1), StopReason::none);
}

TEST_F(Stop, ASaveFileThatCannotBeRemovedCountsOnce) {
  std::filesystem::create_directories(folder_.path() / "SAVE" / "inside");
  StopConditions stop = conditions();
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::save_file);
  stop.saved();
  now_s_ += 10;
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::none);
}

TEST_F(Stop, ASignalCountsMost) {
  touch("STOP");
  StopConditions stop = conditions({now_s_ - 5, {}});
  request_.ask();
  EXPECT_EQ(stop.local_reason(1, 1), StopReason::signal);
}

TEST_F(Stop, OnlySaveLetsTheRunGoOn) {
  EXPECT_FALSE(ends_run(StopReason::none));
  EXPECT_FALSE(ends_run(StopReason::save_file));
  for (const StopReason reason : {StopReason::stop_file, StopReason::end_time, StopReason::signal})
    EXPECT_TRUE(ends_run(reason));
}

}  // namespace
}  // namespace alpa
