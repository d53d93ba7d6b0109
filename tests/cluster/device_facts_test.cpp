#include "libalpa/cluster/device_facts.h"

#include <gtest/gtest.h>

namespace alpa {
namespace {

TEST(DataSheet, HasTheDensePeaksOfGpusAsTheyAndPeopleNameThem) {
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA H200 (GPU-0123-4567)", DType::bf16), 989e12);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA H200", DType::f32), 67e12);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA H100 80GB HBM3", DType::f16), 989e12);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA H100 PCIe", DType::bf16), 756e12);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA A100-SXM4-80GB", DType::bf16), 312e12);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA V100 SXM2 16 GB", DType::f16), 125e12);
}

TEST(DataSheet, IsNotGuessed) {
  EXPECT_EQ(data_sheet_flops_per_s("CPU, 2 threads (AMD EPYC)", DType::f32), std::nullopt);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA GeForce RTX 4090", DType::bf16), std::nullopt);
  EXPECT_EQ(data_sheet_flops_per_s("NVIDIA H200 NVL", DType::bf16), std::nullopt);
  EXPECT_EQ(data_sheet_flops_per_s("", DType::f32), std::nullopt);
}

TEST(ReservedBytes, AreThoseOfGpus) {
  EXPECT_EQ(reserved_bytes(DeviceKind::cuda), std::int64_t{2} << 30);
  EXPECT_EQ(reserved_bytes(DeviceKind::cpu), 0);
  EXPECT_EQ(reserved_bytes(DeviceKind::checked_cpu), 0);
}

}  // namespace
}  // namespace alpa
