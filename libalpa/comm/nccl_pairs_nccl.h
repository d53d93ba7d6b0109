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

/// check_nccl of `call()`, which may wait for other ranks (DeviceWaits).
template <class Call>
void call_nccl(Device& device, const char* name, Call call) {
  const DeviceWaits::Call waits(device.waits(), name);
  check_nccl(call(), name);
}

/// Channels for messages, one for each ordered pair of ranks: a NCCL communicator of two, sender first.
///
/// NCCL runs the calls on one communicator one after another, on whatever streams they were made, and a
/// message is done only when it has been received. Messages on a shared communicator would therefore wait for
/// each other in ways that the ranks' programs do not, up to a deadlock when two ranks both send first.
/// On channels of their own they cannot.
class NcclPairs {
 public:
  /// Collective over the ranks of `group`; makes 2 (n - 1) communicators of two, n rounded up to even.
  NcclPairs(Device& device, const NcclHandle& group);
  /// Collective too: newer releases of NCCL have both ranks of a communicator meet at its end.
  ~NcclPairs();
  NcclPairs(const NcclPairs&) = delete;
  NcclPairs& operator=(const NcclPairs&) = delete;

  struct Outgoing {
    NcclHandle channel;
    std::unique_ptr<Stream> stream;  ///< a message waits here for its receiver, not on the caller's stream
  };
  Outgoing& to(int rank) { return outgoing_[rank]; }
  ncclComm_t from(int rank) const { return incoming_[rank].get(); }

 private:
  /// visit(partner, sends) for both channels to each other rank, in an order in which any two ranks come to
  /// the channels between them at the same point, so that each may wait for the other there. Partner -1: this
  /// rank sits out, others do not.
  template <class Visit>
  void for_each_channel(Visit visit) const;
  void connect(ncclComm_t channel, bool sends, const DeviceMemory& greeting, Stream& stream);

  Device& device_;
  int rank_ = 0, ranks_ = 1;
  std::vector<Outgoing> outgoing_;
  std::vector<NcclHandle> incoming_;
};

}  // namespace alpa
