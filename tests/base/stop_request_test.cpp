#include "libalpa/base/stop_request.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace alpa {
namespace {

/// As a batch system does: to the process, not to a thread of it. Returns when the request knows of it; one
/// that never does is a test that hangs, which CTest ends.
void send(int signal, const StopRequest& stop) {
  kill(getpid(), signal);
  while (!stop.is_asked()) std::this_thread::yield();
}

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST(StopRequest, IsNotThereUntilASignalMakesIt) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const StopRequest stop;
    EXPECT_FALSE(stop.is_asked());
    EXPECT_EQ(stop.signal(), 0);
    send(signal, stop);
    EXPECT_TRUE(stop.is_asked());
    EXPECT_EQ(stop.signal(), signal);
  }
}

TEST(StopRequest, RemembersTheFirstSignal) {
  const StopRequest stop;
  send(SIGUSR1, stop);
  send(SIGTERM, stop);
  EXPECT_EQ(stop.signal(), SIGUSR1);
}

TEST(StopRequest, CanBeMadeWithoutASignal) {
  StopRequest stop;
  stop.ask();
  EXPECT_TRUE(stop.is_asked());
  EXPECT_EQ(stop.signal(), 0);
}

TEST(StopRequest, NeverInterruptsAThreadThatComputes) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    EXPECT_FALSE(is_blocked(signal));
    {
      const StopRequest stop;
      EXPECT_TRUE(is_blocked(signal));
      std::thread([signal] { EXPECT_TRUE(is_blocked(signal)); }).join();
    }
    EXPECT_FALSE(is_blocked(signal));
  }
}

TEST(StopRequestDeathTest, DiesOfASecondInterrupt) {
  EXPECT_EXIT(
      {
        const StopRequest stop;
        send(SIGINT, stop);
        kill(getpid(), SIGINT);
        pause();
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopRequestDeathTest, LetsSignalsThroughAfterwards) {
  EXPECT_EXIT(
      {
        { const StopRequest stop; }
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace alpa
