#include "libalpa/comm/nccl_pairs_nccl.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

template <class Channels>
auto& channel_at(Channels& channels, int rank, const char* way) {
  const auto found = channels.find(rank);
  if (found == channels.end())
    throw std::logic_error(fmt::format("a message {} rank {} without connect()", way, rank));
  return found->second;
}

}  // namespace

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw Error(result == ncclRemoteError ? ErrorKind::peer : ErrorKind::run_time,
              fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(nullptr)),
              "set NCCL_DEBUG=INFO to see what NCCL tried");
}

NcclPairs::NcclPairs(Device& device, const NcclHandle& group)
    : device_(device), all_(group.get()), end_(group.get_deleter()), stream_(device.make_stream()) {
  check_nccl(ncclCommUserRank(all_, &rank_), "ncclCommUserRank");
}

// In the order in which they were made any two ranks come to the end of a channel between them at the same
// point, and each may wait for the other there.
NcclPairs::~NcclPairs() {
  for (const auto& [from, to] : made_)
    (from == rank_ ? outgoing_.at(to).channel : incoming_.at(from)).reset();
}

void NcclPairs::connect(std::span<const RankPair> pairs) {
  std::vector<RankPair> fresh;
  std::ranges::copy_if(pairs, std::back_inserter(fresh), [this](const RankPair& pair) {
    return pair.first != pair.second && connected_.insert(pair).second;
  });
  for (const std::vector<RankPair>& round : pair_rounds(fresh)) {
    const auto own = std::ranges::find_if(
        round, [this](const RankPair& pair) { return pair.first == rank_ || pair.second == rank_; });
    make_channel(own == round.end() ? RankPair{-1, -1} : *own);
  }
}

NcclPairs::Outgoing& NcclPairs::to(int rank) { return channel_at(outgoing_, rank, "to"); }
ncclComm_t NcclPairs::from(int rank) { return channel_at(incoming_, rank, "from").get(); }

void NcclPairs::make_channel(const RankPair& own) {
  const auto& [from, to] = own;
  const bool is_there = from >= 0, sends = from == rank_;
  ncclComm_t pair = nullptr;
  call_nccl(device_, "ncclCommSplit", [&] {
    return ncclCommSplit(all_, is_there ? from : NCCL_SPLIT_NOCOLOR, sends ? 0 : 1, &pair, nullptr);
  });
  if (!is_there) return;
  NcclHandle channel = watched(pair, end_);
  greet(channel.get(), sends);
  if (sends)
    outgoing_.emplace(to, Outgoing{std::move(channel), device_.make_stream()});
  else
    incoming_.emplace(from, std::move(channel));
  made_.push_back(own);
}

// The first message of a channel keeps the host waiting for the other side, so it is sent here, where both
// are.
void NcclPairs::greet(ncclComm_t channel, bool sends) {
  const auto greeting = device_.allocate(1);
  const auto queue = static_cast<cudaStream_t>(stream_->native());
  if (sends)
    call_nccl(device_, "ncclSend",
              [&] { return ncclSend(greeting->data(), 1, ncclInt8, 1, channel, queue); });
  else
    call_nccl(device_, "ncclRecv",
              [&] { return ncclRecv(greeting->data(), 1, ncclInt8, 0, channel, queue); });
  stream_->synchronize();
}

}  // namespace alpa
