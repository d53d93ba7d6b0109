#include <gmock/gmock.h>

#include "tests/kernels/backends.h"

namespace alpa {
namespace {

TEST(KernelsOnGpus, AreTestedWhereOneIsVisible) {
  if (visible_cuda_devices() == 0)
    GTEST_SKIP() << "no CUDA device is visible here, or this build has no CUDA backend";
  std::vector<std::string> names;
  for (const Backend& backend : kernel_backends()) names.push_back(backend.name);
  EXPECT_THAT(names, ::testing::Contains("cuda"));
}

}  // namespace
}  // namespace alpa
