#include "libalpa/kernels/cpu/host_threads.h"

#include <gtest/gtest.h>

#include <thread>

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

}  // namespace
}  // namespace alpa
