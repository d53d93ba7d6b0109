#include "libalpa/profiler/device_instrument.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "libalpa/kernels/kernel.h"
#include "libalpa/ops/catalog.h"
#include "tests/support/small_models.h"
#include "tests/support/test_ranks.h"

namespace alpa {
namespace {

using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

InstrumentOptions quick() {
  return {.repetitions = 2, .least_sample_s = 1e-6, .cold_bytes = 1 << 16, .most_bytes = 1 << 24};
}

/// The same on every rank.
template <class Body>
void on_ranks(int ranks, int per_node, const InstrumentOptions& options, Body body) {
  run_ranks(
      ranks, [] { return make_checked_cpu_device(1); },
      [&](int, Device& device, Communicator& world) {
        DeviceInstrument instrument(device, world, per_node, options);
        body(instrument);
      });
}

Cluster two_devices() {
  return {"t", "CPU", 1, 2, 1 << 30, 1e11, 1e11, 0, 1e10, 1e-6, {1e-6, 1e10}, {1e-5, 1e9}};
}

TEST(DeviceInstrument, TimesEveryOperatorOfAModelAtEveryLocalShape) {
  const Graph graph = testing_models::tiny_gpt(2, 1);
  const Workload work = workload(std::span(&graph, 1), two_devices());
  ASSERT_GT(work.operators.size(), 50u);
  on_ranks(2, 2, quick(), [&](DeviceInstrument& instrument) {
    for (const OperatorCase& each : work.operators) {
      const Timing timing = instrument.time(each);
      EXPECT_THAT(timing.rank_s, SizeIs(2)) << each.signature << ": " << timing.why;
      EXPECT_THAT(timing.rank_s, testing::Each(Gt(0))) << each.signature;
      EXPECT_GT(timing.median_s, 0) << each.signature;
    }
  });
}

TEST(DeviceInstrument, TimesEveryCollectiveOnEveryShapeOfGroup) {
  on_ranks(4, 2, quick(), [&](DeviceInstrument& instrument) {
    for (const GroupShape group : {GroupShape{1, 2}, GroupShape{2, 1}, GroupShape{2, 2}})
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
            CollectiveKind::all_to_all, CollectiveKind::shift, CollectiveKind::send}) {
        if (kind == CollectiveKind::send && group.size() > 2) continue;
        const Timing timing = instrument.time(CollectiveCase{kind, group, 4096});
        EXPECT_GT(timing.median_s, 0) << collective_name(kind);
        EXPECT_GE(timing.spread_s, 0) << collective_name(kind);
        EXPECT_THAT(timing.rank_spread_s, Each(testing::Ge(0))) << collective_name(kind);
      }
  });
}

TEST(DeviceInstrument, LeavesOutRanksThatFillNoGroup) {
  on_ranks(3, 3, quick(), [&](DeviceInstrument& instrument) {
    const Timing timing = instrument.time(CollectiveCase{CollectiveKind::all_reduce, {1, 2}, 1024});
    EXPECT_GT(timing.median_s, 0);
    EXPECT_LT(timing.rank_s[2], 0);
  });
}

// Its price is that of a link that nothing else takes; who shares network interfaces is the cost model's
// part.
TEST(DeviceInstrument, TimesOneMessageAtATimeBetweenTheSameNodes) {
  on_ranks(4, 2, quick(), [&](DeviceInstrument& instrument) {
    const std::vector<double> sent =
        instrument.time(CollectiveCase{CollectiveKind::send, {2, 1}, 1024}).rank_s;
    EXPECT_THAT(sent, testing::ElementsAre(Gt(0), testing::Lt(0), Gt(0), testing::Lt(0)));
    const std::vector<double> reduced =
        instrument.time(CollectiveCase{CollectiveKind::all_reduce, {2, 1}, 1024}).rank_s;
    EXPECT_THAT(reduced, Each(Gt(0)));
  });
}

TEST(DeviceInstrument, TimesAnOperatorAloneAndBesideSumsOfAllRanks) {
  on_ranks(3, 3, quick(), [&](DeviceInstrument& instrument) {
    const OperatorCase each = OperatorCase::of(op_catalog().find("gelu"), {{DType::f32, {4096}}}, {});
    const auto [alone, beside] = instrument.time_beside_sums(each, 4096);
    EXPECT_THAT(alone.rank_s, testing::AllOf(SizeIs(3), Each(Gt(0)))) << alone.why;
    EXPECT_THAT(beside.rank_s, testing::AllOf(SizeIs(3), Each(Gt(0)))) << beside.why;
  });
}

TEST(DeviceInstrument, SaysWhichRankCouldNotAndWhy) {
  InstrumentOptions options = quick();
  options.most_bytes = 1 << 10;
  const Graph graph = testing_models::tiny_gpt(2, 1);
  const Workload work = workload(std::span(&graph, 1), two_devices());
  on_ranks(2, 2, options, [&](DeviceInstrument& instrument) {
    const Timing timing = instrument.time(work.operators.front());
    EXPECT_TRUE(timing.has_failed());
    EXPECT_THAT(timing.why, HasSubstr("rank 0: the sample takes"));
    EXPECT_THAT(timing.why, HasSubstr("a device has 1.00 KiB"));
    EXPECT_TRUE(instrument.time(CollectiveCase{CollectiveKind::all_reduce, {1, 2}, 1 << 20}).has_failed());
    EXPECT_THAT(instrument.time_beside_sums(work.operators.front(), 1024).beside.why,
                HasSubstr("rank 0: the sample takes"));
    // The instrument is none the worse for it.
    EXPECT_FALSE(instrument.time(CollectiveCase{CollectiveKind::all_reduce, {1, 2}, 128}).has_failed());
  });
}

TEST(DeviceInstrument, AgreesOnTheLargestNumber) {
  run_on_threads(3, [&](int rank, Communicator& world) {
    const auto device = make_cpu_device(1);
    DeviceInstrument instrument(*device, world, 3, quick());
    EXPECT_EQ(instrument.largest(rank), 2);
    EXPECT_EQ(instrument.largest(rank == 1 ? 1 : 0), 1);
  });
}

// Each look at this clock of processor time finds a second more gone.
double a_second_more() {
  static double now_s = 0;
  return ++now_s;
}

/// Monotonic, when the processor time was first asked for: before the first sample.
double first_sample_s = 0;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The first samples of a device that was idle would be those of another clock.
TEST(DeviceInstrument, CallsAnOperatorForAWhileBeforeItsFirstSample) {
  InstrumentOptions options = quick();
  options.warm_up_s = 0.02;
  options.processor_s = [] {
    if (first_sample_s == 0) first_sample_s = now_s();
    return now_s();
  };
  const OperatorCase each = OperatorCase::of(op_catalog().find("gelu"), {{DType::f32, {16}}}, {});
  const double begin_s = now_s();
  on_ranks(1, 1, options, [&](DeviceInstrument& instrument) { instrument.time(each); });
  EXPECT_GE(first_sample_s - begin_s, 0.02);
}

TEST(DeviceInstrument, StretchesProcessorTimeWhereRanksOutnumberCores) {
  InstrumentOptions options = quick();
  options.least_sample_s = 0;  // one call a sample
  options.cores_of_rank = 0.25;
  options.processor_s = a_second_more;
  const OperatorCase each = OperatorCase::of(op_catalog().find("gelu"), {{DType::f32, {16}}}, {});
  on_ranks(1, 1, options, [&](DeviceInstrument& instrument) {
    EXPECT_EQ(instrument.time(each).median_s, 4);  // a second of work on a quarter of a core
  });
}

TEST(RankExchange, GathersEveryRanksNumbersAndTexts) {
  run_on_threads(2, [&](int rank, Communicator& world) {
    const auto device = make_checked_cpu_device(1);
    RankExchange exchange(*device, world);
    const std::vector<double> mine{1.5 * rank, -1};
    EXPECT_THAT(exchange.gather(mine),
                testing::ElementsAre(testing::ElementsAre(0, -1), testing::ElementsAre(1.5, -1)));
    EXPECT_THAT(exchange.gather("rank " + std::to_string(rank)), testing::ElementsAre("rank 0", "rank 1"));
    EXPECT_THAT(exchange.gather(std::string(1000, 'x')), testing::Each(SizeIs(255)));
  });
}

class Samples : public testing::Test {
 protected:
  /// On the plain CPU device, whose memory a test may read.
  std::unique_ptr<Device> device_ = make_cpu_device(1);
  std::unique_ptr<Stream> stream_ = device_->make_stream();

  static OperatorCase named(const std::string& beginning) {
    const Graph graph = testing_models::tiny_gpt(8, 1);
    for (const OperatorCase& each : workload(std::span(&graph, 1), two_devices()).operators)
      if (each.signature.starts_with(beginning)) return each;
    ADD_FAILURE() << "no " << beginning;
    return {};
  }
};

/// How many places the calls have an operand, or the first result, in.
std::size_t places(const std::vector<SampleMemory::Call>& calls, std::size_t operand) {
  std::set<const void*> places;
  for (const auto& call : calls) places.insert(call.operands[operand].data);
  return places.size();
}
std::size_t result_places(const std::vector<SampleMemory::Call>& calls) {
  std::set<const void*> places;
  for (const auto& call : calls) places.insert(call.results[0].data);
  return places.size();
}

TEST_F(Samples, OfSuccessiveCallsLieInOtherPlacesThatGoRoundTheColdRange) {
  const OperatorCase each = named("gelu_grad f32[8x8x64]");  // two operands of 16 KiB
  SampleMemory memory(*device_, *stream_, 1 << 18, 1 << 24);
  const auto calls = memory.calls(each);
  ASSERT_THAT(calls, SizeIs(16));  // 2^18 / 2^14: results
  EXPECT_EQ(places(calls, 1), 8u);
  EXPECT_EQ(result_places(calls), 16u);
}

TEST_F(Samples, HaveTheFirstOperandWhereItWasMadeUnlessTheyOverwriteState) {
  SampleMemory memory(*device_, *stream_, 1 << 18, 1 << 24);
  EXPECT_EQ(places(memory.calls(named("gelu_grad f32[8x8x64]")), 0), 1u);
  EXPECT_GT(places(memory.calls(named("adamw")), 0), 1u);
}

TEST_F(Samples, OfSmallTensorsAreSpreadOverTheRange) {
  const OperatorCase each = named("bias_add f32[8x8x16]");
  SampleMemory memory(*device_, *stream_, 1 << 24, 1 << 24);
  const auto calls = memory.calls(each);
  ASSERT_THAT(calls, SizeIs(SampleMemory::kMostSets));
  EXPECT_EQ(static_cast<const char*>(calls[1].operands[1].data) -
                static_cast<const char*>(calls[0].operands[1].data),
            1 << 16);
}

TEST_F(Samples, LetGoOfMemoryOfEarlierOnesWhereBothAreTooMuch) {
  const std::int64_t most = 16 << 20;
  SampleMemory memory(*device_, *stream_, 1 << 16, most);
  const auto of_mib = [](const char* op, std::int64_t mib, std::size_t operands) {
    return OperatorCase::of(op_catalog().find(op),
                            std::vector<TensorType>(operands, {DType::f32, {mib << 18}}), {});
  };
  memory.calls(of_mib("add", 5, 2));  // 10 MiB of operands, 5 of results
  EXPECT_EQ(memory.held_bytes(), 15 << 20);
  memory.calls(of_mib("gelu", 6, 1));  // 10 and 6 can stay together
  EXPECT_EQ(memory.held_bytes(), most);
  memory.calls(of_mib("gelu", 8, 1));
  EXPECT_EQ(memory.held_bytes(), most);
  memory.messages(7 << 20);
  EXPECT_LE(memory.held_bytes(), most);
}

TEST_F(Samples, AreNeverZeroAndIndicesLieWithinTheirTile) {
  SampleMemory memory(*device_, *stream_, 1 << 16, 1 << 24);
  const OperatorCase each =
      named("embedding f32[16x16] i32[8x8]");  // half of the vocabulary, as the last device has it
  const auto calls = memory.calls(each);
  const float* table = static_cast<const float*>(calls[0].operands[0].data);
  for (int i = 0; i < 256; ++i) EXPECT_GT(std::abs(table[i]), 0.05f);
  const std::int32_t* ids = static_cast<const std::int32_t*>(calls[0].operands[1].data);
  std::set<std::int32_t> seen(ids, ids + 64);
  EXPECT_GE(*seen.begin(), 16);
  EXPECT_LT(*seen.rbegin(), 32);
  EXPECT_GT(seen.size(), 8u);
}

// Sums of numbers of one sign only grow: matrix units take less power for them, and run faster than in
// training.
TEST_F(Samples, HaveBothSignsUnlessTheyOverwriteState) {
  SampleMemory memory(*device_, *stream_, 1 << 18, 1 << 24);
  const auto negative = [&](const char* op, std::size_t operand) {
    const auto calls = memory.calls(named(op));
    const float* values = static_cast<const float*>(calls[0].operands[operand].data);
    return std::count_if(values, values + 256, [](float value) { return value < 0; });
  };
  EXPECT_GT(negative("einsum", 0), 64);
  EXPECT_LT(negative("einsum", 0), 192);
  EXPECT_GT(negative("einsum", 1), 64);
  EXPECT_EQ(negative("adamw", 3), 0);  // the running mean of squares
}

TEST(UsualOptions, OfGpusReachBeyondTheirCaches) {
  const InstrumentOptions gpu = usual_options(DeviceKind::cuda), cpu = usual_options(DeviceKind::cpu);
  EXPECT_GT(gpu.cold_bytes, 126 << 20);
  EXPECT_GT(gpu.warm_up_s, 0);
  EXPECT_GE(gpu.least_sample_s, 5e-3);
  EXPECT_EQ(cpu.warm_up_s, 0);
}

TEST_F(Samples, OfSlotsLieInAllPlacesOfTheTilesExperts) {
  SampleMemory memory(*device_, *stream_, 1 << 16, 1 << 24);
  const OperatorCase each =
      OperatorCase::of(op_catalog().find("dispatch"), {{DType::f32, {1, 64, 4}}, {DType::i32, {1, 64, 1}}},
                       {{"size_e", std::int64_t{4}}, {"size_c", std::int64_t{8}}});
  const auto calls = memory.calls(each);
  const std::int32_t* slots = static_cast<const std::int32_t*>(calls[0].operands[1].data);
  const std::set<std::int32_t> seen(slots, slots + 64);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), 4 * 8);
  EXPECT_GT(seen.size(), 16u);
}

TEST_F(Samples, OfResultsThatOverwriteOperandsAreTheOperands) {
  SampleMemory memory(*device_, *stream_, 1 << 16, 1 << 24);
  const auto calls = memory.calls(named("adamw"));
  EXPECT_EQ(calls[0].results[0].data, calls[0].operands[0].data);
  EXPECT_EQ(calls[0].results[1].data, calls[0].operands[2].data);
  EXPECT_EQ(calls[0].results[2].data, calls[0].operands[3].data);
}

}  // namespace
}  // namespace alpa
