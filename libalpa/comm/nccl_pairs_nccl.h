#pragma once
#include <nccl.h>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "libalpa/comm/nccl_watch_nccl.h"
#include "libalpa/comm/pair_rounds.h"
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

/// Channels for messages, one for each ordered pair of ranks that has any: a NCCL communicator of two, sender
/// first.
///
/// NCCL runs the calls on one communicator one after another, on whatever streams they were made, and a
/// message is done only when it has been received. Messages on a shared communicator would therefore wait for
/// each other in ways that the ranks' programs do not, up to a deadlock when two ranks both send first.
/// On channels of their own they cannot. Each takes memory of both devices, and a call of all ranks.
class NcclPairs {
 public:
  /// Of the ranks of `group`, which outlives it.
  NcclPairs(Device& device, const NcclHandle& group);
  /// Collective: newer releases of NCCL have both ranks of a communicator meet at its end.
  ~NcclPairs();
  NcclPairs(const NcclPairs&) = delete;
  NcclPairs& operator=(const NcclPairs&) = delete;

  /// Collective, with the same pairs: makes the channels that are not there yet.
  void connect(std::span<const RankPair>);

  struct Outgoing {
    NcclHandle channel;
    std::unique_ptr<Stream> stream;  ///< a message waits here for its receiver, not on the caller's stream
  };
  /// Throw std::logic_error where the two are not connected.
  Outgoing& to(int rank);
  ncclComm_t from(int rank);

 private:
  /// One round of pair_rounds(); this rank's pair in it, or {-1, -1}.
  void make_channel(const RankPair&);
  void greet(ncclComm_t channel, bool sends);

  Device& device_;
  ncclComm_t all_;
  EndNccl end_;
  int rank_ = 0;
  std::unique_ptr<Stream> stream_;  ///< of connect()
  std::map<int, Outgoing> outgoing_;
  std::map<int, NcclHandle> incoming_;
  std::set<RankPair> connected_;  ///< of all ranks
  std::vector<RankPair> made_;    ///< of this one, in the order in which they were made
};

}  // namespace alpa
