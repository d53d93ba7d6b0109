#pragma once
#include <nccl.h>

#include <memory>
#include <vector>

#include "libalpa/comm/nccl_watch_nccl.h"
#include "libalpa/device/device.h"

namespace alpa {

/// Throws Error with NCCL's text unless `result` is success: peer when another rank failed, run_time
/// otherwise.
void check_nccl(ncclResult_t result, const char* call);

/// Ways for messages, one for each ordered pair of ranks: a NCCL communicator of two, sender first.
///
/// NCCL runs the calls on one communicator one after another, on whatever streams they were made, and a
/// message is done only when it has been received. Messages on a shared communicator would therefore wait for
/// each other in ways that the ranks' programs do not, up to a deadlock when two ranks both send first. On
/// ways of their own they cannot.
class NcclLanes {
 public:
  /// Collective over the ranks of `group`; makes 2 (n - 1) communicators of two, n rounded up to even.
  NcclLanes(Device& device, const NcclHandle& group);

  struct Outgoing {
    NcclHandle way;
    std::unique_ptr<Stream> stream;  ///< a message waits here for its receiver, not on the caller's stream
  };
  Outgoing& to(int rank) { return outgoing_[static_cast<std::size_t>(rank)]; }
  ncclComm_t from(int rank) const { return incoming_[static_cast<std::size_t>(rank)].get(); }

 private:
  static void connect(ncclComm_t way, bool sends, const DeviceMemory& greeting, Stream& stream);

  std::vector<Outgoing> outgoing_;
  std::vector<NcclHandle> incoming_;
};

}  // namespace alpa
