#include "libalpa/comm/nccl_watch_nccl.h"

#include <fmt/core.h>

#include <chrono>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{500};
constexpr int kLooksUntilEnd = 10;  // 5 s, longer than a failing rank waits for others to fail too

/// Of the first that has failed; success where none has.
ncclResult_t failure_among(const std::set<ncclComm_t>& comms) {
  for (ncclComm_t comm : comms) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state != ncclSuccess && state != ncclInProgress)
      return state;
  }
  return ncclSuccess;
}

}  // namespace

NcclWatch::NcclWatch() : thread_([this] { look_now_and_then(); }) {}

NcclWatch::~NcclWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void NcclWatch::add(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  watched_.insert(comm);
}

void NcclWatch::remove(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  watched_.erase(comm);
}

void NcclWatch::look_now_and_then() {
  std::unique_lock lock(mutex_);
  int failed_looks = 0;
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) {
    const ncclResult_t failure = failure_among(watched_);
    failed_looks = failure == ncclSuccess ? 0 : failed_looks + 1;
    if (failed_looks < kLooksUntilEnd) continue;
    end_process(Error(ErrorKind::peer, fmt::format("a rank is gone, or the network to it: {} ({})",
                                                   ncclGetErrorString(failure), ncclGetLastError(nullptr))));
  }
}

NcclHandle watched(ncclComm_t comm, EndNccl end) {
  end.watch->add(comm);
  return NcclHandle(comm, std::move(end));
}

}  // namespace alpa
