#include "libalpa/comm/nccl_pairs_nccl.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/comm/round_robin.h"

namespace alpa {

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw Error(result == ncclRemoteError ? ErrorKind::peer : ErrorKind::run_time,
              fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)),
              "set NCCL_DEBUG=INFO to see what NCCL tried");
}

template <class Visit>
void NcclPairs::for_each_channel(Visit visit) const {
  for (int round = 0; round < round_robin_rounds(ranks_); ++round) {
    const int partner = round_robin_partner(rank_, round, ranks_);
    for (const bool upwards : {true, false}) visit(partner, upwards == (rank_ < partner));
  }
}

NcclPairs::NcclPairs(Device& device, const NcclHandle& group) : device_(device) {
  ncclComm_t all = group.get();
  check_nccl(ncclCommUserRank(all, &rank_), "ncclCommUserRank");
  check_nccl(ncclCommCount(all, &ranks_), "ncclCommCount");
  outgoing_.resize(static_cast<std::size_t>(ranks_));
  incoming_.resize(static_cast<std::size_t>(ranks_));
  const auto greeting = device.allocate(1);
  const auto stream = device.make_stream();
  for_each_channel([&](int partner, bool sends) {
    const int color = partner < 0 ? NCCL_SPLIT_NOCOLOR : std::min(rank_, partner);
    ncclComm_t pair = nullptr;
    call_nccl(device, "ncclCommSplit",
              [&] { return ncclCommSplit(all, color, sends ? 0 : 1, &pair, nullptr); });
    if (partner < 0) return;
    NcclHandle channel = watched(pair, group.get_deleter());
    connect(channel.get(), sends, *greeting, *stream);
    if (sends)
      to(partner) = {std::move(channel), device.make_stream()};
    else
      incoming_[partner] = std::move(channel);
  });
}

NcclPairs::~NcclPairs() {
  for_each_channel([&](int partner, bool sends) {
    if (partner < 0) return;
    (sends ? to(partner).channel : incoming_[partner]).reset();
  });
}

// The first message of a channel keeps the host waiting for the other side, so it is sent here, where both
// are.
void NcclPairs::connect(ncclComm_t channel, bool sends, const DeviceMemory& greeting, Stream& stream) {
  const auto queue = static_cast<cudaStream_t>(stream.native());
  if (sends)
    call_nccl(device_, "ncclSend", [&] { return ncclSend(greeting.data(), 1, ncclInt8, 1, channel, queue); });
  else
    call_nccl(device_, "ncclRecv", [&] { return ncclRecv(greeting.data(), 1, ncclInt8, 0, channel, queue); });
  stream.synchronize();
}

}  // namespace alpa
