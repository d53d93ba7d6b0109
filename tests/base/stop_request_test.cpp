#include "libalpa/base/stop_request.h"

#include <gtest/gtest.h>

#include <csignal>

namespace alpa {
namespace {

TEST(StopRequest, IsNotThereUntilASignalMakesIt) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const StopRequest stop;
    EXPECT_FALSE(stop.is_asked());
    EXPECT_EQ(stop.signal(), 0);
    raise(signal);
    EXPECT_TRUE(stop.is_asked());
    EXPECT_EQ(stop.signal(), signal);
  }
}

TEST(StopRequest, RemembersTheFirstSignal) {
  const StopRequest stop;
  raise(SIGUSR1);
  raise(SIGTERM);
  EXPECT_EQ(stop.signal(), SIGUSR1);
}

TEST(StopRequest, CanBeMadeWithoutASignal) {
  StopRequest stop;
  stop.ask();
  EXPECT_TRUE(stop.is_asked());
  EXPECT_EQ(stop.signal(), 0);
}

TEST(StopRequestDeathTest, DiesOfASecondInterrupt) {
  EXPECT_EXIT(
      {
        const StopRequest stop;
        raise(SIGINT);
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopRequestDeathTest, PutsTheEarlierHandlersBack) {
  EXPECT_EXIT(
      {
        { const StopRequest stop; }
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace alpa
