#include "libalpa/solver/guarded_child.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace alpa {
namespace {

using testing::Optional;
using testing::SizeIs;

TEST(RunInChild, ReturnsWhatTheBodyReturns) {
  EXPECT_THAT(run_in_child(
                  [] {
                    return std::vector<double>{1.5, -2};
                  },
                  60),
              Optional(std::vector<double>{1.5, -2}));
  EXPECT_THAT(run_in_child([] { return std::vector<double>{}; }, 60), Optional(SizeIs(0)));
}

TEST(RunInChild, CarriesMoreThanAPipeHolds) {
  EXPECT_THAT(run_in_child([] { return std::vector<double>(300'000, 3); }, 60),
              Optional(std::vector<double>(300'000, 3)));
}

TEST(RunInChild, LeavesTheParentsMemoryAlone) {
  int touched = 0;
  run_in_child([&] { return touched = 1, std::vector<double>{}; }, 60);
  EXPECT_EQ(touched, 0);
}

TEST(RunInChild, GivesNothingWhenTheBodyNeverEnds) {
  std::atomic<bool> forever = true;
  const auto spin = [&] {
    while (forever) continue;
    return std::vector<double>{};
  };
  EXPECT_EQ(run_in_child(spin, 0.05), std::nullopt);
}

TEST(RunInChild, GivesNothingWhenTheBodyThrowsOrCrashes) {
  EXPECT_EQ(run_in_child([]() -> std::vector<double> { throw std::runtime_error("no"); }, 60), std::nullopt);
  EXPECT_EQ(run_in_child([]() -> std::vector<double> { std::_Exit(3); }, 60), std::nullopt);
}

TEST(RunInChild, SilencesTheBody) {
  testing::internal::CaptureStdout();
  run_in_child(
      [] {
        std::puts("chatter");
        std::fflush(stdout);
        return std::vector<double>{};
      },
      60);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace alpa
