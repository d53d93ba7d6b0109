#include "libalpa/runtime/race_watch.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

class RaceWatchTest : public testing::Test {
 protected:
  void writes(int lane, std::int64_t begin, std::int64_t end) { use(lane, begin, end, true); }
  void reads(int lane, std::int64_t begin, std::int64_t end) { use(lane, begin, end, false); }
  void use(int lane, std::int64_t begin, std::int64_t end, bool writes) {
    watch_.begin(lane, &names_[lane]);
    watch_.touch(begin, end, writes);
  }

  const std::string names_[3] = {"first", "second", "third"};
  RaceWatch watch_{3};
};

TEST_F(RaceWatchTest, LetsOneLaneDoWhatItLikes) {
  writes(0, 0, 100);
  EXPECT_NO_THROW(reads(0, 50, 150));
  EXPECT_NO_THROW(writes(0, 20, 60));
}

TEST_F(RaceWatchTest, LetsLanesReadTheSame) {
  writes(0, 0, 100);
  const RaceWatch::Clock written = watch_.record(0);
  watch_.wait(1, written);
  watch_.wait(2, written);
  EXPECT_NO_THROW(reads(1, 0, 100));
  EXPECT_NO_THROW(reads(2, 50, 100));
}

TEST_F(RaceWatchTest, RefusesARaceWhateverCameFirst) {
  for (const bool first_writes : {false, true}) {
    RaceWatch watch(2);
    watch.begin(0, &names_[0]);
    watch.touch(0, 100, first_writes);
    watch.begin(1, &names_[1]);
    EXPECT_THAT([&] { watch.touch(99, 200, !first_writes); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(
                    first_writes ? "'second' reads memory that 'first', on another lane, may still use"
                                 : "'second' writes memory that 'first', on another lane, may still use")));
  }
}

TEST_F(RaceWatchTest, KnowsBytesApart) {
  writes(0, 0, 100);
  EXPECT_NO_THROW(writes(1, 100, 200));
  EXPECT_NO_THROW(reads(2, 200, 300));
  EXPECT_THROW(reads(2, 150, 250), Error);
}

TEST_F(RaceWatchTest, KnowsWhatFollowsOfOtherLanes) {
  writes(0, 0, 100);
  watch_.wait(1, watch_.record(0));
  EXPECT_NO_THROW(reads(1, 0, 10));
  watch_.wait(2, watch_.record(1));
  EXPECT_NO_THROW(writes(2, 0, 100));
}

TEST_F(RaceWatchTest, IsNotDeceivedByWhatWasRecordedBefore) {
  const RaceWatch::Clock early = watch_.record(0);
  writes(0, 0, 100);
  watch_.wait(1, early);
  EXPECT_THROW(reads(1, 0, 100), Error);
}

}  // namespace
}  // namespace alpa
