#include "tests/comm/emulation/emulated_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "libalpa/comm/reduce.h"

namespace {

/// What one rank gives to a call of all.
struct Part {
  const void* from = nullptr;
  void* to = nullptr;
};

/// The ranks of a communicator.
struct Members {
  explicit Members(int size) : parts(static_cast<std::size_t>(size)), left(size) {}

  std::vector<Part> parts;
  int left;  ///< have yet to call
  std::uint64_t meetings = 0;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail;  ///< by sender and receiver
};

// One lock for all: the ranks are few, and tests want no speed.
std::mutex lock;
std::condition_variable changed;
std::map<std::uint64_t, std::shared_ptr<Members>> by_id;
std::uint64_t next_id = 0;
int ranks_of_world = 0, waiting_for_an_end = 0;
bool in_a_circle = false, released = false;

thread_local int group_depth = 0;
thread_local std::vector<std::function<ncclResult_t()>> receives_of_group;

template <class Condition>
ncclResult_t wait_until(std::unique_lock<std::mutex>& held, Condition condition) {
  changed.wait(held, [&] { return condition() || released; });
  return condition() ? ncclSuccess : ncclRemoteError;
}

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  return count * (type == ncclInt8 ? 1 : type == ncclFloat16 || type == ncclBfloat16 ? 2 : 4);
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Members> members;
  int rank;

  int size() const { return static_cast<int>(members->parts.size()); }

  /// The last of the ranks to come does it for all.
  template <class Body>
  ncclResult_t meet(Part part, Body body) {
    std::unique_lock held(lock);
    Members& all = *members;
    all.parts[rank] = part;
    const std::uint64_t meeting = all.meetings;
    if (--all.left > 0) return wait_until(held, [&] { return all.meetings != meeting; });
    body(all.parts);
    all.left = size();
    ++all.meetings;
    changed.notify_all();
    return ncclSuccess;
  }
};

namespace {

/// into[i] = the reduction of element i of all parts, from `first` on.
void reduce_parts(const std::vector<Part>& parts, std::size_t first, std::size_t count, ncclDataType_t type,
                  ncclRedOp_t operation, void* into) {
  using alpa::DType;
  const DType dtype = type == ncclFloat32    ? DType::f32
                      : type == ncclBfloat16 ? DType::bf16
                      : type == ncclFloat16  ? DType::f16
                                             : DType::i32;
  std::vector<const void*> from;
  for (const Part& part : parts) from.push_back(static_cast<const char*>(part.from) + bytes_of(first, type));
  alpa::reduce_in_order(from, into, static_cast<std::int64_t>(count), dtype,
                        operation == ncclSum ? alpa::Reduction::sum : alpa::Reduction::max);
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard held(lock);
  std::memcpy(id->internal, &next_id, sizeof next_id);
  ++next_id;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  {
    const std::lock_guard held(lock);
    std::shared_ptr<Members>& members = by_id[number];
    if (!members) members = std::make_shared<Members>(ranks);
    ranks_of_world = ranks;
    *comm = new ncclComm{members, rank};
  }
  const ncclResult_t result = (*comm)->meet({}, [](const auto&) {});
  if (result != ncclSuccess) delete std::exchange(*comm, nullptr);
  return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  struct Choice {
    int color, key;
    ncclComm_t* part;
  } choice{color, key, part};
  return comm->meet({&choice, nullptr}, [](const std::vector<Part>& parts) {
    std::map<int, std::vector<const Choice*>> groups;
    for (const Part& each : parts) {
      const auto* chosen = static_cast<const Choice*>(each.from);
      *chosen->part = nullptr;
      if (chosen->color != NCCL_SPLIT_NOCOLOR) groups[chosen->color].push_back(chosen);
    }
    for (auto& [unused, group] : groups) {
      std::stable_sort(group.begin(), group.end(), [](auto a, auto b) { return a->key < b->key; });
      const auto members = std::make_shared<Members>(static_cast<int>(group.size()));
      for (std::size_t r = 0; r < group.size(); ++r)
        *group[r]->part = new ncclComm{members, static_cast<int>(r)};
    }
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::unique_ptr<ncclComm> own(comm);
  std::unique_lock held(lock);
  Members& all = *comm->members;
  if (--all.left == 0) {
    waiting_for_an_end -= comm->size() - 1;
    ++all.meetings;
    changed.notify_all();
    return ncclSuccess;
  }
  if (++waiting_for_an_end == ranks_of_world) {
    in_a_circle = released = true;
    changed.notify_all();
  }
  return wait_until(held, [&, meeting = all.meetings] { return all.meetings != meeting; });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->size();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "a remote error" : "an error";
}
const char* ncclGetLastError(ncclComm_t) { return "emulated"; }

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t) {
  return comm->meet({from, to}, [=](const std::vector<Part>& parts) {
    std::vector<char> sum(bytes_of(count, type));
    reduce_parts(parts, 0, count, type, operation, sum.data());
    for (const Part& part : parts) std::copy(sum.begin(), sum.end(), static_cast<char*>(part.to));
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return comm->meet({from, to}, [=](const std::vector<Part>& parts) {
    const std::size_t bytes = bytes_of(count, type);
    for (const Part& target : parts)
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memmove(static_cast<char*>(target.to) + r * bytes, parts[r].from, bytes);
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t) {
  return comm->meet({from, to}, [=](const std::vector<Part>& parts) {
    for (std::size_t r = 0; r < parts.size(); ++r)
      reduce_parts(parts, r * count, count, type, operation, parts[r].to);
  });
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t) {
  return comm->meet({from, to}, [=](const std::vector<Part>& parts) {
    reduce_parts(parts, 0, count, type, operation, parts[root].to);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  return comm->meet({from, to}, [=](const std::vector<Part>& parts) {
    for (const Part& part : parts) std::memmove(part.to, parts[root].from, bytes_of(count, type));
  });
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  const auto* const bytes = static_cast<const char*>(from);
  const std::lock_guard held(lock);
  comm->members->mail[{comm->rank, peer}].emplace_back(bytes, bytes + bytes_of(count, type));
  changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  const auto receive = [=]() -> ncclResult_t {
    std::unique_lock held(lock);
    auto& mail = comm->members->mail[{peer, comm->rank}];
    const ncclResult_t result = wait_until(held, [&] { return !mail.empty(); });
    if (result != ncclSuccess) return result;
    if (mail.front().size() != bytes_of(count, type)) return ncclInvalidArgument;
    std::copy(mail.front().begin(), mail.front().end(), static_cast<char*>(to));
    mail.pop_front();
    return ncclSuccess;
  };
  if (group_depth == 0) return receive();
  receives_of_group.emplace_back(receive);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const auto& receive : receives_of_group) result = std::max(result, receive());
  receives_of_group.clear();
  return result;
}

namespace alpa::emulation {

void reset_nccl() {
  const std::lock_guard held(lock);
  by_id.clear();
  waiting_for_an_end = 0;
  in_a_circle = released = false;
}

bool ends_waited_in_a_circle() {
  const std::lock_guard held(lock);
  return in_a_circle;
}

void release_nccl() {
  const std::lock_guard held(lock);
  released = true;
  changed.notify_all();
}

}  // namespace alpa::emulation
