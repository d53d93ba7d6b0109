#include "libalpa/cluster/device_words.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(KindOfDevice, LeavesOutTheNumberOfAGpu) {
  EXPECT_EQ(kind_of_device("NVIDIA H200 (GPU-0123-4567)"), "NVIDIA H200");
  EXPECT_EQ(kind_of_device("CPU, 1 thread (AMD EPYC)"), "CPU, 1 thread (AMD EPYC)");
}

TEST(KindOfWords, IsThatOfAProcessorHoweverItIsWritten) {
  for (const char* words : {"", "CPU", "cpu", "Cpu, 2 threads", "checked CPU, 1 thread"})
    EXPECT_EQ(kind_of_words(words), DeviceKind::cpu) << words;
  for (const char* words : {"NVIDIA H200", "C", "CP"})
    EXPECT_EQ(kind_of_words(words), DeviceKind::cuda) << words;
}

TEST(MatchDevices, DistinguishesThreadsFromProcessors) {
  const std::string one = "CPU, 1 thread (Intel(R) Xeon(R) CPU)";
  EXPECT_EQ(match_devices(one, one), DeviceMatch::same);
  EXPECT_EQ(match_devices(one, "checked " + one), DeviceMatch::same);
  EXPECT_EQ(match_devices(one, "CPU, 2 threads (Intel(R) Xeon(R) CPU)"), DeviceMatch::other_threads);
  EXPECT_EQ(match_devices(one, "CPU, 1 thread (AMD EPYC)"), DeviceMatch::other);
  EXPECT_EQ(match_devices(one, "NVIDIA H200"), DeviceMatch::other);
  EXPECT_EQ(match_devices("NVIDIA H100 PCIe", "NVIDIA H100 80GB HBM3"), DeviceMatch::other);
}

TEST(CanMean, TakesTheModelFromWhatPeopleWrite) {
  EXPECT_TRUE(names_same_device("CPU, 1 thread", "CPU, 2 threads (AMD EPYC)"));
  EXPECT_FALSE(names_same_device("CPU (AMD EPYC)", "CPU, 2 threads (Intel(R) Xeon(R) CPU)"));
  EXPECT_FALSE(names_same_device("NVIDIA V100 SXM2 16 GB", "CPU, 1 thread (AMD EPYC)"));
  EXPECT_TRUE(names_same_device("NVIDIA V100 SXM2 16 GB", "Tesla V100-SXM2-16GB"));
  EXPECT_TRUE(names_same_device("NVIDIA H100 SXM 80 GB", "NVIDIA H100 80GB HBM3"));
  EXPECT_FALSE(names_same_device("NVIDIA H100 SXM 80 GB", "NVIDIA H200"));
}

}  // namespace
}  // namespace alpa
