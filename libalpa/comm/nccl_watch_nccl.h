#pragma once
#include <nccl.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <type_traits>

#include "libalpa/device/device_waits.h"

namespace alpa {

/// Looks after a rank's NCCL communicators from a thread of its own. That a peer or the network is gone NCCL
/// reports only when it is asked, and the GPU waits for them for ever. Where one has failed, the process ends
/// with the exit status of ErrorKind::peer, which makes the launcher end the other ranks; not before a peer
/// that left with an error of its own has had the time to report it.
class NcclWatch {
 public:
  NcclWatch();
  ~NcclWatch();

  void add(ncclComm_t);
  void remove(ncclComm_t);

 private:
  void look_now_and_then();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<ncclComm_t> watched_;
  bool ends_ = false;
  std::thread thread_;
};

struct EndNccl {
  std::shared_ptr<NcclWatch> watch;
  DeviceWaits* waits;

  void operator()(ncclComm_t comm) const {
    watch->remove(comm);
    const DeviceWaits::Call call(*waits, "ncclCommDestroy");
    // Destroying waits for other ranks; while an error travels up they may never come.
    (void)(std::uncaught_exceptions() > 0 ? ncclCommAbort(comm) : ncclCommDestroy(comm));
  }
};
using NcclHandle = std::unique_ptr<std::remove_pointer_t<ncclComm_t>, EndNccl>;

/// Takes over `comm` and watches it.
NcclHandle watched(ncclComm_t comm, EndNccl end);

}  // namespace alpa
