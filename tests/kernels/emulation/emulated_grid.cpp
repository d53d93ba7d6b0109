#include "tests/kernels/emulation/emulated_grid.h"

#include <ucontext.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace alpa::emulation {
namespace {

constexpr unsigned kWarp = 32;
constexpr std::size_t kMostThreads = 1024, kStackBytes = 64 << 10;

/// A call that can be left in the middle and gone on with later, on a stack of its own. Going back and forth
/// is a matter of some registers; swapcontext would ask the system about signals each time.
class Fiber {
 public:
  /// Calls body(), once per resume() that finds the call before ended.
  explicit Fiber(void (*body)())
      : body_(body), stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)) {
    getcontext(&start_);
    start_.uc_stack.ss_sp = stack_.get();
    start_.uc_stack.ss_size = kStackBytes;
    start_.uc_link = nullptr;
    makecontext(&start_, &Fiber::repeat, 0);
  }

  /// Goes on until the fiber suspends itself or its call ends.
  void resume() {
    running_ = this;
    if (_setjmp(caller_) != 0) return;
    if (started_) _longjmp(own_, 1);
    started_ = true;
    setcontext(&start_);
  }

  /// From within the call.
  static void suspend() {
    Fiber* own = running_;
    if (_setjmp(own->own_) == 0) _longjmp(own->caller_, 1);
  }

 private:
  static void repeat() {
    for (;;) {
      running_->body_();
      suspend();
    }
  }

  static Fiber* running_;

  void (*body_)();
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t start_;
  std::jmp_buf own_, caller_;
  bool started_ = false;
};

Fiber* Fiber::running_ = nullptr;

enum class State { unstarted, ready, at_warp_barrier, at_block_barrier, ended };

/// The threads of the block that runs. A fiber works one thread off after another, until a thread has to
/// wait: that one keeps it, and another fiber goes on with the next.
class Block {
 public:
  void run(unsigned threads, const std::function<void()>& body) {
    body_ = &body;
    threads_.resize(threads);
    for (Thread& thread : threads_) {
      thread.state = State::unstarted;
      thread.copies.assign(1, {});
    }
    begun_ = 0;
    while (true) {
      for (unsigned first = 0; first < threads; first += kWarp)
        run_warp(first, std::min(first + kWarp, threads));
      if (all(State::ended, 0, threads)) return;
      if (!open_barrier(State::at_block_barrier, 0, threads))
        throw std::logic_error("threads of a block wait for each other at different barriers");
    }
  }

  void wait(State barrier) {
    threads_[threadIdx.x].state = barrier;
    Fiber::suspend();
  }

  std::deque<std::vector<std::function<void()>>>& copies() { return threads_[threadIdx.x].copies; }

  void begin_exchange() { ++threads_[threadIdx.x].exchanges; }
  std::uint64_t& exchanged(unsigned lane) {
    return exchanged_[threads_[threadIdx.x].exchanges % 2][threadIdx.x / kWarp * kWarp + lane];
  }

 private:
  struct Thread {
    State state = State::unstarted;
    std::unique_ptr<Fiber> fiber;  ///< while it waits
    unsigned exchanges = 0;
    std::deque<std::vector<std::function<void()>>> copies;
  };

  /// The thread whose turn is at that place.
  unsigned in_order(unsigned place) const {
    return order == Order::ascending ? place : static_cast<unsigned>(threads_.size()) - 1 - place;
  }

  /// Runs the threads at places [begin, end) until each has ended or waits for the whole block: a warp may be
  /// that far ahead of the others.
  void run_warp(unsigned begin, unsigned end) {
    warp_end_ = end;
    do {
      while (begun_ < end) {
        if (idle_.empty()) idle_.push_back(std::make_unique<Fiber>(&Block::work));
        fiber_ = std::move(idle_.back());
        idle_.pop_back();
        go_on();
      }
      for (unsigned place = begin; place < end; ++place) {
        const unsigned t = in_order(place);
        if (threads_[t].state != State::ready) continue;
        threadIdx = Extent(t, 0, 0);
        fiber_ = std::move(threads_[t].fiber);
        go_on();
      }
    } while (open_barrier(State::at_warp_barrier, begin, end));
  }

  /// Begins threads until one has to wait, or those of the warp have ended.
  static void work();

  /// Runs fiber_ until it suspends itself.
  void go_on() {
    fiber_->resume();
    Thread& last = threads_[threadIdx.x];
    (last.state == State::ended ? idle_.emplace_back() : last.fiber) = std::move(fiber_);
  }

  bool all(State state, unsigned begin, unsigned end) const {
    for (unsigned place = begin; place < end; ++place)
      if (threads_[in_order(place)].state != state) return false;
    return true;
  }

  /// Lets the threads at those places go on where all of them wait there.
  bool open_barrier(State barrier, unsigned begin, unsigned end) {
    if (!all(barrier, begin, end)) return false;
    for (unsigned place = begin; place < end; ++place) threads_[in_order(place)].state = State::ready;
    return true;
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  unsigned begun_ = 0, warp_end_ = 0;  ///< places
  std::unique_ptr<Fiber> fiber_;       ///< that runs
  std::vector<std::unique_ptr<Fiber>> idle_;
  std::uint64_t exchanged_[2][kMostThreads] = {};
};

Block block_that_runs;

void Block::work() {
  Block& block = block_that_runs;
  while (block.begun_ < block.warp_end_) {
    const unsigned t = block.in_order(block.begun_++);
    threadIdx = Extent(t, 0, 0);
    (*block.body_)();
    block.threads_[t].state = State::ended;
  }
}

}  // namespace

void note_launch(const void* kernel) {
  static std::mutex lock;
  const std::lock_guard held(lock);
  launched.insert(kernel);
}

void run_grid(Extent grid, Extent block, const std::function<void()>& thread) {
  if (block.x == 0 || block.x > kMostThreads || block.y != 1 || block.z != 1 || grid.z != 1)
    throw std::logic_error("blocks of this shape are not emulated");
  gridDim = grid;
  blockDim = block;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t b = order == Order::ascending ? i : blocks - 1 - i;
    blockIdx = Extent(static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x), 0);
    block_that_runs.run(block.x, thread);
  }
}

void wait_for_block() { block_that_runs.wait(State::at_block_barrier); }
void wait_for_warp() { block_that_runs.wait(State::at_warp_barrier); }
std::deque<std::vector<std::function<void()>>>& own_copies() { return block_that_runs.copies(); }
void begin_exchange() { block_that_runs.begin_exchange(); }
std::uint64_t& place_of_lane(unsigned lane) { return block_that_runs.exchanged(lane); }
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
