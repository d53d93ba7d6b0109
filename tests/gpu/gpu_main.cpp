#include <gtest/gtest.h>

#include <cstdio>

#include "libalpa/base/error.h"
#include "libalpa/device/device.h"

// Runs the tests on the first GPU; exit status 77 (skipped) where there is none.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) try {
      std::printf("on %s\n", alpa::make_cuda_device(0)->description().c_str());
    } catch (const alpa::Error& error) {
      std::printf("skipped: %s\n", error.happened().c_str());
      return 77;
    }
  return RUN_ALL_TESTS();
}
