#include <gmock/gmock.h>

#include <cmath>

#include "libalpa/ops/catalog.h"
#include "libalpa/profiler/device_instrument.h"
#include "libalpa/profiler/probe.h"
#include "tests/all_ranks.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::SizeIs;

InstrumentOptions quick() {
  return {.repetitions = 2, .least_sample_s = 1e-4, .cold_bytes = 1 << 16, .most_bytes = 1 << 28};
}

TEST(SumsBesideMpi, ATimedOperatorIsTimedAloneToo) {
  const AllRanks ranks;
  const auto device = make_cpu_device(1);
  DeviceInstrument instrument(*device, ranks.all(), ranks.all().size(), quick());
  const TensorType matrix{DType::f32, {128, 128}};
  const OperatorCase product =
      OperatorCase::of(op_catalog().find("einsum"), {matrix, matrix}, {{"equation", "m k, k n -> m n"}});
  const auto [alone, beside] = instrument.time_beside_sums(product, 1 << 16);
  EXPECT_THAT(alone.rank_s, AllOf(SizeIs(2), Each(Gt(0)))) << alone.why;
  EXPECT_THAT(beside.rank_s, AllOf(SizeIs(2), Each(Gt(0)))) << beside.why;
  // The ranks can go on together.
  EXPECT_FALSE(instrument.time(CollectiveCase{CollectiveKind::all_reduce, {1, 2}, 128}).has_failed());
}

TEST(SumsBesideMpi, AreWhatProbingFindsTheSlowdownBy) {
  const AllRanks ranks;
  const auto device = make_cpu_device(1);
  DeviceInstrument instrument(*device, ranks.all(), ranks.all().size(), quick());
  const Machines machines{"here", "CPU, 1 thread", 1, 2, 1 << 30, {"node"}};
  RankRates rates;
  rates.f32_flops_per_s = rates.bf16_flops_per_s = rates.memory_bytes_per_s = {1e10, 1e10};
  rates.f16_flops_per_s = {0, 0};
  const Cluster cluster = probe_cluster(machines, rates, op_catalog(), instrument);
  EXPECT_TRUE(std::isfinite(cluster.overlap_slowdown));
  EXPECT_GE(cluster.overlap_slowdown, 1);
  RecordProperty("overlap_slowdown", std::to_string(cluster.overlap_slowdown));
}

}  // namespace
}  // namespace alpa
