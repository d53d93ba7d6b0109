#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/base/hang_limits.h"

namespace alpa {

/// The calls of a GPU's libraries that may wait for other ranks: for the end of what is queued, for memory to
/// be given back, for NCCL to meet its peers. Where a rank hangs they wait for ever and cannot be left, and
/// an exception would only wait again where it gives memory back. So a thread looks how long they last and
/// has the process ended.
class DeviceWaits {
 public:
  using Report = std::function<void(const std::string&)>;

  DeviceWaits() = default;
  ~DeviceWaits();
  DeviceWaits(const DeviceWaits&) = delete;
  DeviceWaits& operator=(const DeviceWaits&) = delete;

  /// What becomes of long calls: `warn` gets "cudaStreamSynchronize has lasted 3m00s", `give_up` an
  /// Error(peer) and does not return to a caller. Once; before it no call is long.
  void limit(HangLimits, Report warn, std::function<void(const Error&)> give_up);

  /// Looks twice a second from now on, from a thread of its own.
  void watch();

  /// One look, `awake_s` after the one before.
  void look(double awake_s);

  /// A call that may wait, from its construction to its destruction. Within another one it stands for that
  /// one until it ends. From one thread at a time; takes no lock.
  class Call {
   public:
    /// `name` outlives the object.
    Call(DeviceWaits& waits, const char* name) : waits_(waits), outer_(waits.begin(name)) {}
    ~Call() { waits_.begin(outer_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    DeviceWaits& waits_;
    const char* outer_;
  };

 private:
  const char* begin(const char* name) {
    const char* const before = name_.exchange(name, std::memory_order_relaxed);
    number_.fetch_add(1, std::memory_order_relaxed);
    return before;
  }

  std::atomic<const char*> name_ = nullptr;  ///< of the call under way
  std::atomic<std::uint64_t> number_ = 0;    ///< calls begun and ended
  HangLimits limits_;
  Report warn_;
  std::function<void(const Error&)> give_up_;
  std::uint64_t seen_ = 0;  ///< number_ at the last look
  double lasted_s_ = 0;
  bool is_reported_ = false;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  std::thread thread_;
};

/// Prints the error and ends the process with its status at once: no destructor runs, none could wait for a
/// GPU. The launcher then ends the other ranks.
[[noreturn]] void end_process(const Error&);

}  // namespace alpa
