#include "tests/kernels/emulation/emulated_grid.h"

#include <ucontext.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace alpa::emulation {
namespace {

constexpr unsigned kWarp = 32, kMostThreads = 1024;
constexpr std::size_t kStackBytes = 128 << 10;

enum class State { ready, at_warp_barrier, at_block_barrier, ended };

/// The threads of one block, as coroutines that go on in turns. They last from block to block of a grid.
class BlockOfThreads {
 public:
  BlockOfThreads(unsigned count, const std::function<void()>& body) : body_(body), threads_(count) {
    for (unsigned t = 0; t < count; ++t) {
      Thread& thread = threads_[t];
      thread.stack = std::make_unique<std::byte[]>(kStackBytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = kStackBytes;
      thread.context.uc_link = nullptr;
      makecontext(&thread.context, &BlockOfThreads::start, 0);
    }
  }

  void run() {
    for (Thread& thread : threads_) thread.state = State::ready;
    bool runs = true;
    while (runs) {
      for (unsigned i = 0; i < threads_.size(); ++i) {
        const auto t = order == Order::ascending ? i : static_cast<unsigned>(threads_.size()) - 1 - i;
        if (threads_[t].state == State::ready) resume(t);
      }
      runs = !all(State::ended, 0, threads_.size());
      if (runs) open_barriers();
    }
  }

  static BlockOfThreads* current;

  void wait(State barrier) {
    Thread& thread = threads_[threadIdx.x];
    thread.state = barrier;
    swapcontext(&thread.context, &scheduler_);
  }

  void begin_exchange() { threads_[threadIdx.x].exchanges++; }
  std::uint64_t& place(unsigned lane) {
    return places_[threads_[threadIdx.x].exchanges % 2][threadIdx.x / kWarp * kWarp + lane];
  }

 private:
  struct Thread {
    ucontext_t context;
    std::unique_ptr<std::byte[]> stack;
    State state = State::ready;
    unsigned exchanges = 0;
  };

  static void start() {
    for (;;) {
      current->body_();
      current->wait(State::ended);
    }
  }

  void resume(unsigned t) {
    threadIdx = Extent(t, 0, 0);
    current = this;
    swapcontext(&scheduler_, &threads_[t].context);
  }

  bool all(State state, std::size_t begin, std::size_t end) const {
    for (std::size_t t = begin; t < end; ++t)
      if (threads_[t].state != state) return false;
    return true;
  }

  void open_barriers() {
    bool opened = false;
    const auto open = [&](State barrier, std::size_t begin, std::size_t end) {
      if (!all(barrier, begin, end)) return;
      for (std::size_t t = begin; t < end; ++t) threads_[t].state = State::ready;
      opened = true;
    };
    open(State::at_block_barrier, 0, threads_.size());
    for (std::size_t warp = 0; warp < threads_.size(); warp += kWarp)
      open(State::at_warp_barrier, warp, std::min<std::size_t>(warp + kWarp, threads_.size()));
    if (!opened) throw std::logic_error("threads of a block wait for each other at different barriers");
  }

  const std::function<void()>& body_;
  std::vector<Thread> threads_;
  ucontext_t scheduler_;
  std::uint64_t places_[2][kMostThreads] = {};
};

BlockOfThreads* BlockOfThreads::current = nullptr;

}  // namespace

void run_grid(Extent grid, Extent block, const std::function<void()>& thread) {
  if (block.x == 0 || block.x > kMostThreads || block.y != 1 || block.z != 1 || grid.z != 1)
    throw std::logic_error("blocks of this shape are not emulated");
  gridDim = grid;
  blockDim = block;
  BlockOfThreads threads(block.x, thread);
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t b = order == Order::ascending ? i : blocks - 1 - i;
    blockIdx = Extent(static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x), 0);
    threads.run();
  }
}

void wait_for_block() { BlockOfThreads::current->wait(State::at_block_barrier); }
void wait_for_warp() { BlockOfThreads::current->wait(State::at_warp_barrier); }
void begin_exchange() { BlockOfThreads::current->begin_exchange(); }
std::uint64_t& place_of_lane(unsigned lane) { return BlockOfThreads::current->place(lane); }
unsigned own_lane() { return threadIdx.x % kWarp; }

unsigned ballot(bool holds) {
  begin_exchange();
  place_of_lane(own_lane()) = holds;
  wait_for_warp();
  unsigned bits = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) bits |= static_cast<unsigned>(place_of_lane(lane)) << lane;
  return bits;
}

}  // namespace alpa::emulation
