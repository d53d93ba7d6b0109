#include "libalpa/runtime/stoppable_work.h"

#include <gmock/gmock.h>

#include "tests/support/train_ranks.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string as_it_is() { return "as it is"; }

class PiecesOfWork : public testing::Test {
 protected:
  /// A line after each piece.
  StoppableWork of(std::int64_t pieces, const TrainRanks& ranks) {
    return {"piece", pieces, 0, ranks, stop_, log_};
  }

  StopRequest stop_;
  Log log_{"test", LogLevel::info};
};

TEST_F(PiecesOfWork, TellsHowFarItHasComeUntilItIsDone) {
  testing::internal::CaptureStderr();
  for_train_ranks(1, [&](const TrainRanks& ranks) {
    StoppableWork work = of(3, ranks);
    work.piece_done(as_it_is);
    EXPECT_FALSE(work.is_done());
    work.piece_done(as_it_is);
    work.piece_done(as_it_is);
    EXPECT_TRUE(work.is_done());
  });
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("piece 1/3  as it is  left "));
  EXPECT_THAT(lines, HasSubstr("piece 2/3  as it is  left "));
  EXPECT_THAT(lines, Not(HasSubstr("piece 3/3")));
}

TEST_F(PiecesOfWork, IsDoneSoonerWherePiecesTurnOutNotToBeNeeded) {
  testing::internal::CaptureStderr();
  for_train_ranks(1, [&](const TrainRanks& ranks) {
    StoppableWork work = of(10, ranks);
    work.piece_done(as_it_is, 7);
    EXPECT_FALSE(work.is_done());
    work.piece_done(as_it_is, 1);
    EXPECT_TRUE(work.is_done());
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("piece 1/3  "));
}

TEST(WorkOfRanks, IsStoppedOnAllOnceOneIsAsked) {
  StopRequest of_one, of_others;  // of signals, which nobody sends here, one alone would hear
  Log log("test", LogLevel::off);
  for_train_ranks(3, [&](const TrainRanks& ranks) {
    StopRequest& own = ranks.control.rank() == 1 ? of_one : of_others;
    StoppableWork work("piece", 3, 1e9, ranks, own, log);
    work.piece_done(as_it_is);
    EXPECT_FALSE(work.is_stopped());
    if (ranks.control.rank() == 1) own.ask();
    work.piece_done(as_it_is);
    EXPECT_TRUE(work.is_stopped());
    EXPECT_FALSE(work.is_done());
    work.piece_done(as_it_is);
    EXPECT_FALSE(work.is_stopped()) << "all was done by then";
  });
}

}  // namespace
}  // namespace alpa
