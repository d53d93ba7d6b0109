#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <type_traits>
#include <vector>

namespace alpa::emulation {

/// CUDA's dim3.
struct Extent {
  unsigned x = 1, y = 1, z = 1;
  Extent() = default;
  explicit Extent(unsigned x_extent, unsigned y_extent = 1, unsigned z_extent = 1)
      : x(x_extent), y(y_extent), z(z_extent) {}
};

/// Of the thread that runs.
inline Extent threadIdx, blockIdx, blockDim, gridDim;

/// The order in which the blocks of a grid run, the warps of a block between two barriers of the block, and
/// the threads of a warp between two of the warp. Kernels whose results depend on it lack a barrier.
enum class Order {
  ascending,
  descending,
  random,  ///< of streams; of threads as descending
};
inline std::atomic<Order> order = Order::ascending;

/// The kernels that were launched since it was last emptied, by address; by one thread at a time.
inline std::set<const void*> launched;
void note_launch(const void* kernel);  ///< by any

/// Runs `thread` once for every thread of a grid, blocks one after another, the threads of a block in turns
/// from barrier to barrier. Throws std::logic_error when threads of a block wait for each other at different
/// barriers, or when some have ended while others wait.
void run_grid(Extent grid, Extent block, const std::function<void()>& thread);

/// Barriers, called by the threads.
void wait_for_block();
void wait_for_warp();

/// Where the running thread leaves a value for its warp: a place of its own for every second exchange, so
/// that a fast thread does not overwrite what a slow one has yet to read. `lane` is one of the thread's warp.
std::uint64_t& place_of_lane(unsigned lane);
void begin_exchange();
unsigned own_lane();

/// __shfl_xor_sync with all lanes.
template <class Value>
Value exchange(Value value, int lane_mask) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= sizeof(std::uint64_t));
  begin_exchange();
  std::memcpy(&place_of_lane(own_lane()), &value, sizeof value);
  wait_for_warp();
  std::memcpy(&value, &place_of_lane(own_lane() ^ static_cast<unsigned>(lane_mask)), sizeof value);
  return value;
}

/// What each lane of the warp gives, for all of them to read. All lanes make one, and leave it, together.
template <class Value>
class OfLanes {
 public:
  explicit OfLanes(const Value& value) : value_(value) {
    begin_exchange();
    const Value* own = &value_;
    std::memcpy(&place_of_lane(own_lane()), &own, sizeof own);
    wait_for_warp();
  }
  ~OfLanes() { wait_for_warp(); }
  OfLanes(const OfLanes&) = delete;
  OfLanes& operator=(const OfLanes&) = delete;

  const Value& operator[](unsigned lane) const {
    const Value* value;
    std::memcpy(&value, &place_of_lane(lane), sizeof value);
    return *value;
  }

 private:
  Value value_;  // on the stack of its thread, which waits until all have read it
};

/// Groups of copies that the running thread has begun, the open one last; none are left of a thread before
/// it.
std::deque<std::vector<std::function<void()>>>& own_copies();

/// __ballot_sync with all lanes.
unsigned ballot(bool holds);

}  // namespace alpa::emulation
