#include "libalpa/solver/integer_program/child_process.h"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <thread>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::Optional;
using testing::ThrowsMessage;

Deadline in_a_minute() { return Deadline(60); }

TEST(RunProcess, ReturnsWhatTheProgramWrites) {
  EXPECT_THAT(run_process({"/bin/echo", "a b"}, "", in_a_minute()), Optional(std::string("a b\n")));
}

TEST(RunProcess, CarriesMoreThanAPipeHoldsBothWays) {
  std::string input(3'000'000, '\0');
  for (std::size_t k = 0; k < input.size(); ++k) input[k] = static_cast<char>(k * 31);
  EXPECT_THAT(run_process({"/bin/cat"}, input, in_a_minute()), Optional(input));
}

TEST(RunProcess, GivesNothingWhenTheProgramFailsOrCrashes) {
  EXPECT_EQ(run_process({"/bin/false"}, "", in_a_minute()), std::nullopt);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "kill -9 $$"}, "", in_a_minute()), std::nullopt);
}

TEST(RunProcess, KillsAProgramThatNeverEnds) {
  EXPECT_EQ(run_process({"/bin/sh", "-c", "while :; do :; done"}, "", Deadline(0.05)), std::nullopt);
}

TEST(RunProcess, KillsAProgramWhenAStopIsAskedFor) {
  StopRequest stop;
  std::thread asking([&stop] { stop.ask(); });
  EXPECT_EQ(run_process({"/bin/sh", "-c", "while :; do :; done"}, "", Deadline(3600, &stop)), std::nullopt);
  asking.join();
}

TEST(RunProcess, LetsNothingThroughToTheTerminal) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_process({"/bin/sh", "-c", "echo out; echo chatter >&2"}, "", in_a_minute());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(RunProcess, NamesAProgramThatCannotBeStarted) {
  EXPECT_THAT([] { run_process({"/nowhere/alpa-cbc"}, "", in_a_minute()); },
              ThrowsMessage<Error>(HasSubstr("cannot start '/nowhere/alpa-cbc': No such file")));
}

// A forked copy of this process would now and then inherit a lock of the allocator that another thread holds.
TEST(RunProcess, WorksWhileOtherThreadsAllocate) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&stop] {
      while (!stop) {
        std::map<int, std::string> churn;
        for (int i = 0; i < 500; ++i)
          churn[i * 7919 % 503] = std::string(static_cast<std::size_t>(i % 300), 'x');
      }
    });
  }
  for (int k = 0; k < 40; ++k)
    EXPECT_THAT(run_process({"/bin/cat"}, "input", in_a_minute()), Optional(std::string("input")));
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace alpa
