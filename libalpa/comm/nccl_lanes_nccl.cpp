#include "libalpa/comm/nccl_lanes_nccl.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/comm/tournament.h"

namespace alpa {

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw Error(result == ncclRemoteError ? ErrorKind::peer : ErrorKind::run_time,
              fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)),
              "set NCCL_DEBUG=INFO to see what NCCL tried");
}

NcclLanes::NcclLanes(Device& device, const NcclHandle& group) {
  ncclComm_t all = group.get();
  int rank = 0, ranks = 1;
  check_nccl(ncclCommUserRank(all, &rank), "ncclCommUserRank");
  check_nccl(ncclCommCount(all, &ranks), "ncclCommCount");
  outgoing_.resize(static_cast<std::size_t>(ranks));
  incoming_.resize(static_cast<std::size_t>(ranks));
  const auto greeting = device.allocate(1);
  const auto stream = device.make_stream();
  for (int round = 0; round < tournament_rounds(ranks); ++round) {
    const int partner = tournament_partner(rank, round, ranks);
    for (const bool upwards : {true, false}) {
      const bool sends = upwards == (rank < partner);
      const int color = partner < 0 ? NCCL_SPLIT_NOCOLOR : std::min(rank, partner);
      ncclComm_t pair = nullptr;
      check_nccl(ncclCommSplit(all, color, sends ? 0 : 1, &pair, nullptr), "ncclCommSplit for messages");
      if (partner < 0) continue;
      NcclHandle way = watched(pair, group.get_deleter().watch);
      connect(way.get(), sends, *greeting, *stream);
      if (sends)
        to(partner) = {std::move(way), device.make_stream()};
      else
        incoming_[static_cast<std::size_t>(partner)] = std::move(way);
    }
  }
}

// The first message of a way keeps the host waiting for the other side, so it is sent here, where both are.
void NcclLanes::connect(ncclComm_t way, bool sends, const DeviceMemory& greeting, Stream& stream) {
  const auto queue = static_cast<cudaStream_t>(stream.native());
  if (sends)
    check_nccl(ncclSend(greeting.data(), 1, ncclInt8, 1, way, queue), "ncclSend");
  else
    check_nccl(ncclRecv(greeting.data(), 1, ncclInt8, 0, way, queue), "ncclRecv");
  stream.synchronize();
}

}  // namespace alpa
