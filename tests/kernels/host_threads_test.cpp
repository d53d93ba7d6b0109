#include "libalpa/kernels/cpu/host_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>

#include "libalpa/kernels/cpu/host_loops.h"

namespace alpa {
namespace {

TEST(HostThreads, OfAThreadWithALimitAreNoMore) {
  int limited = 0, after = 0;
  std::jthread([&] {
    limit_host_threads(1);
    {
      const HostThreads two(2);
      limited = host_threads();
    }
    after = host_threads();
  }).join();
  EXPECT_EQ(limited, 1);
  EXPECT_EQ(after, 1);
}

#ifdef __SSE__
// Of a new thread, whose team is new.
TEST(HostThreads, TakeNumbersBelowTheLeastNormalOneForZero) {
  std::array<float, 2> within{1, 1};
  float outside = 0;
  std::jthread([&] {
    const volatile float least = std::numeric_limits<float>::min();
    {
      const HostThreads two(2);
      for_ranges(2, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) within[static_cast<std::size_t>(i)] = least * 0.5f;
      });
    }
    outside = least * 0.5f;
  }).join();
  EXPECT_EQ(within, (std::array<float, 2>{0, 0}));
  EXPECT_GT(outside, 0);
}
#endif

}  // namespace
}  // namespace alpa
