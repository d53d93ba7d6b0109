// CUDA kernels on a machine without a GPU: their sources, compiled for the host (emulated_grid.h). The other
// tests of this program are those of all kernels.
#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_program.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/emulation/emulated_compiler.h"
#include "tests/kernels/emulation/emulated_device.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

using emulation::make_device;
using emulation::Order;

std::vector<std::string> ops_with_kernels() {
  std::vector<std::string> ops;
  for (const auto& [backend, op] : backends_with(op_names())) ops.push_back(op);
  return ops;
}

class Emulated : public ::testing::TestWithParam<std::string> {};

// Between two barriers the threads of a block run one after another. A kernel that lacks a barrier gives
// other results when they do so in the opposite order.
TEST_P(Emulated, KernelsDoNotDependOnTheOrderOfThreads) {
  const OpDef& op = op_catalog().find(GetParam());
  for (const OpCase& c : cases_of(op))
    for (const DType dtype : types_of(c, DeviceKind::cpu)) {  // of 16 bits one is enough
      SCOPED_TRACE(case_text(c));
      const PreparedCase p = prepare(c, dtype);
      const auto forwards = run_kernel(*make_device(Order::ascending), p.run(), p.values);
      EXPECT_EQ(run_kernel(*make_device(Order::descending), p.run(), p.values), forwards);
    }
}

INSTANTIATE_TEST_SUITE_P(Op, Emulated, ::testing::ValuesIn(ops_with_kernels()),
                         [](const auto& op) { return op.param; });

// With a run-time compiler passes over rows are compiled, and give what they give without.
TEST(EmulatedRounds, GiveTheSameWhereTheirPassesAreCompiled) {
  int cases = 0;
  for (const OpDef* op : {&ops::rounds, &ops::rounds_grad})
    for (const OpCase& c : cases_of(*op)) {
      if (!c.operands.starts_with("f[2x40x")) continue;  // others go alike
      SCOPED_TRACE(case_text(c));
      const PreparedCase p = prepare(c, DType::f32);
      emulation::compiles = true;
      const auto compiled = run_kernel(*make_device(Order::ascending), p.run(), p.values);
      emulation::compiles = false;
      expect_all_near(compiled, p.expected(), p);
      ++cases;
    }
  EXPECT_GE(cases, 8);
  EXPECT_GE(emulation::texts_compiled(), cases);
}

// What waits for no other round, and what no other round waits for, goes beside what leads from round to
// round.
TEST(EmulatedRounds, GiveTheSameBitsInEveryOrderOfTheirStreams) {
  int with_streams = 0;
  for (const OpDef* op : {&ops::rounds, &ops::rounds_grad})
    for (const OpCase& c : cases_of(*op)) {
      const PreparedCase p = prepare(c, DType::f32);
      if (vertex_program(p.call(), RoundOrder::streams).streams_used() == 1) continue;
      SCOPED_TRACE(case_text(c));
      const auto ascending = run_kernel(*make_device(Order::ascending), p.run(), p.values);
      expect_all_near(ascending, p.expected(), p);
      for (const Order order : {Order::descending, Order::random, Order::random})
        EXPECT_EQ(run_kernel(*make_device(order), p.run(), p.values), ascending);
      ++with_streams;
    }
  EXPECT_GE(with_streams, 20);
}

// What the emulation itself promises.

void run(unsigned blocks, unsigned threads, const std::function<void()>& thread) {
  emulation::run_grid(dim3(blocks), dim3(threads), thread);
}

TEST(Emulation, SumsAWarpByExchanges) {
  std::vector<int> sums(64);
  run(1, 64, [&] {
    int value = static_cast<int>(threadIdx.x);
    for (int distance = 16; distance > 0; distance /= 2)
      value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    sums[threadIdx.x] = value;
  });
  EXPECT_THAT(std::vector(sums.begin(), sums.begin() + 32), ::testing::Each(31 * 32 / 2));
  EXPECT_THAT(std::vector(sums.begin() + 32, sums.end()), ::testing::Each(31 * 32 / 2 + 32 * 32));
}

TEST(Emulation, ShowsAMissingBarrier) {
  const auto neighbours = [](bool with_barrier, Order order) {
    emulation::order = order;
    std::vector<unsigned> shared(32), seen(32);
    run(1, 32, [&] {
      shared[threadIdx.x] = 100 + threadIdx.x;
      if (with_barrier) __syncthreads();
      seen[threadIdx.x] = shared[(threadIdx.x + 1) % 32];
    });
    return seen;
  };
  EXPECT_EQ(neighbours(true, Order::ascending), neighbours(true, Order::descending));
  EXPECT_NE(neighbours(false, Order::ascending), neighbours(false, Order::descending));
}

TEST(Emulation, ShowsAMissingWaitBetweenStreams) {
  const auto seen = [](bool waits, Order order) {
    const std::unique_ptr<Device> device = make_device(order);
    const auto first = device->make_stream(), second = device->make_stream();
    const int one = 1;
    int made = 0, read = 0;
    first->copy_to_device(&made, &one, sizeof one);
    if (waits) second->wait(*first->record());
    second->copy_to_host(&read, &made, sizeof read);
    EXPECT_EQ(made, 0) << "before anyone waits";
    second->synchronize();
    return read;
  };
  EXPECT_EQ(seen(true, Order::descending), 1);
  EXPECT_EQ(seen(false, Order::descending), 0);
}

// An event stands for what came before its last record when it was waited for.
TEST(Emulation, LetsAStreamWaitForTheRecordThatWasTheLast) {
  const std::unique_ptr<Device> device = make_device(Order::descending);
  const auto first = device->make_stream(), second = device->make_stream();
  const std::unique_ptr<Event> event = first->record();
  second->wait(*event);
  std::string order;
  emulation::queue(static_cast<cudaStream_t>(first->native()), [&] { order += "first "; });
  first->record(*event);
  emulation::queue(static_cast<cudaStream_t>(second->native()), [&] { order += "second "; });
  event->wait_on_host();
  EXPECT_EQ(order, "second first ");
}

TEST(Emulation, RefusesABarrierThatSomeThreadsDoNotReach) {
  EXPECT_THAT(
      [] {
        run(1, 64, [] {
          if (threadIdx.x < 40) __syncthreads();
        });
      },
      ::testing::ThrowsMessage<std::logic_error>(::testing::HasSubstr("different barriers")));
}

}  // namespace
}  // namespace alpa
