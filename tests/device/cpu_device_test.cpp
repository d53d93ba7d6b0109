#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/device/device.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

float read(const DeviceMemory& memory, int index) {
  return static_cast<const volatile float*>(memory.data())[index];
}
void write(const DeviceMemory& memory, int index, float value) {
  static_cast<volatile float*>(memory.data())[index] = value;
}

TEST(CpuDevice, NamesItsThreadsAndProcessor) {
  EXPECT_THAT(make_cpu_device(1)->description(), MatchesRegex("CPU, 1 thread \\(.+\\)"));
  EXPECT_THAT(make_checked_cpu_device(3)->description(), MatchesRegex("checked CPU, 3 threads \\(.+\\)"));
}

TEST(CpuDevice, MemoryIsHostMemory) {
  const auto device = make_cpu_device(1);
  const auto memory = device->allocate(sizeof(float));
  write(*memory, 0, 4.0f);
  EXPECT_EQ(read(*memory, 0), 4.0f);
}

TEST(CheckedCpuDevice, ReadingOrWritingOutsideHostAccessEndsTheProcess) {
  const auto device = make_checked_cpu_device(1);
  const auto memory = device->allocate(1000);
  EXPECT_DEATH(read(*memory, 0), "");
  EXPECT_DEATH(write(*memory, 0, 1.0f), "");
}

TEST(CheckedCpuDevice, MemoryIsOpenWithinNestedBracketsAndClosedAfterTheLast) {
  const auto device = make_checked_cpu_device(1);
  const auto memory = device->allocate(sizeof(float));
  {
    const auto outer = device->host_access();
    write(*memory, 0, 7.0f);
    { const auto inner = device->host_access(); }
    EXPECT_EQ(read(*memory, 0), 7.0f);
  }
  EXPECT_DEATH(read(*memory, 0), "");
}

TEST(CheckedCpuDevice, MemoryAllocatedWithinABracketIsOpen) {
  const auto device = make_checked_cpu_device(1);
  const auto access = device->host_access();
  const auto memory = device->allocate(sizeof(float));
  EXPECT_TRUE(std::isnan(read(*memory, 0)));
}

TEST(CheckedCpuDevice, UnwrittenMemoryReadsAsNotANumber) {
  const auto device = make_checked_cpu_device(1);
  const auto memory = device->allocate(100 * sizeof(float));
  const auto access = device->host_access();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(std::isnan(read(*memory, i))) << i;
}

TEST(CheckedCpuDevice, ReachingPastEitherEndEndsTheProcess) {
  const auto device = make_checked_cpu_device(1);
  const auto memory = device->allocate(8192);
  const auto access = device->host_access();
  EXPECT_DEATH(read(*memory, -1), "");
  EXPECT_DEATH(write(*memory, 2048, 1.0f), "");
}

TEST(CheckedCpuDevice, StagingIsOpenToTheHost) {
  const auto device = make_checked_cpu_device(1);
  const auto staging = device->allocate_staging(sizeof(float));
  write(*staging, 0, 3.0f);
  EXPECT_EQ(read(*staging, 0), 3.0f);
}

TEST(CheckedCpuDevice, BracketsOfSeveralThreadsKeepMemoryOpenUntilTheLastOneCloses) {
  const auto device = make_checked_cpu_device(2);
  const auto memory = device->allocate(2 * sizeof(float));
  const auto work = [&](int index) {
    for (int round = 0; round < 200; ++round) {
      const auto access = device->host_access();
      write(*memory, index, static_cast<float>(round));
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  const auto access = device->host_access();
  EXPECT_EQ(read(*memory, 0), 199.0f);
  EXPECT_EQ(read(*memory, 1), 199.0f);
}

TEST(CudaDevice, ThatIsNotThereIsRefusedWithTheReason) {
  try {
    make_cuda_device(visible_cuda_devices());
    FAIL() << "a device was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::allocation);
    EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("no CUDA backend"), HasSubstr("no CUDA device")));
  }
}

}  // namespace
}  // namespace alpa
