#include "tests/comm/emulation/emulated_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "libalpa/comm/reduce.h"
#include "tests/kernels/emulation/emulated_stream.h"

namespace {

/// What one rank gives to a call of all.
struct Part {
  const void* from = nullptr;
  void* to = nullptr;
};

/// A collective that ranks have come to on their streams.
struct Meeting {
  std::vector<Part> parts;
  int left = 0;  ///< have yet to come
};

/// A message that one side or both have come to.
struct Message {
  Part first;  ///< of the side that came first
  std::size_t bytes = 0;
  bool is_done = false;
};

/// The ranks of a communicator.
struct Members {
  explicit Members(int size) : parts(static_cast<std::size_t>(size)), left(size) {}

  std::vector<Part> parts;
  int left;  ///< have yet to call
  std::uint64_t meetings = 0;

  // Of calls that are queued, under the lock of the streams. Calls are numbered, messages from one rank to
  // another too.
  std::map<std::uint64_t, std::shared_ptr<Meeting>> collectives;
  std::map<std::tuple<int, int, std::uint64_t>, std::shared_ptr<Message>> messages;
};

// One lock for all calls that keep the host waiting: the ranks are few, and tests want no speed.
std::mutex lock;
std::condition_variable changed;
std::map<std::uint64_t, std::shared_ptr<Members>> by_id;
std::uint64_t next_id = 0;
int ranks_of_world = 0, waiting_for_an_end = 0;
bool in_a_circle = false, released = false;
std::atomic<int> there_are = 0;

/// A rank's part of a call, begun when its stream comes there: whether it is done.
using Progress = std::function<bool()>;

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
  ncclComm(std::shared_ptr<Members> of, int own) : members(std::move(of)), rank(own) { ++there_are; }
  ~ncclComm() { --there_are; }
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;

  std::shared_ptr<Members> members;
  int rank;
  std::uint64_t collectives = 0;                          ///< that this rank has called
  std::map<int, std::uint64_t> sent = {}, received = {};  ///< messages, by the other rank
  /// Whether the last call is done: calls on a communicator go one after another, whatever their streams.
  std::shared_ptr<bool> last_is_done = std::make_shared<bool>(true);

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
    *comm = new ncclComm(members, rank);
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
        *group[r]->part = new ncclComm(members, static_cast<int>(r));
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

namespace {

/// Calls of a rank between ncclGroupStart and ncclGroupEnd, which go on side by side.
struct Group {
  int depth = 0;
  std::vector<Progress> calls;
  std::set<ncclComm_t> comms;
  cudaStream_t stream = nullptr;
};
thread_local Group group;

void queue_group() {
  std::vector<std::shared_ptr<bool>> before;
  const auto done = std::make_shared<bool>(false);
  for (const ncclComm_t comm : group.comms) before.push_back(std::exchange(comm->last_is_done, done));
  const auto is_done = [](const std::shared_ptr<bool>& each) { return *each; };
  alpa::emulation::queue_until(group.stream, [=, calls = std::move(group.calls)] {
    if (!std::ranges::all_of(before, is_done)) return false;
    *done = true;
    for (const Progress& call : calls) *done = call() && *done;  // all of them begin
    return *done;
  });
  group = {};
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, Progress call) {
  if (!group.calls.empty() && stream != group.stream) return ncclInvalidUsage;
  group.calls.push_back(std::move(call));
  group.comms.insert(comm);
  group.stream = stream;
  if (group.depth == 0) queue_group();
  return ncclSuccess;
}

/// The last of the ranks to come does it for all.
template <class Body>
ncclResult_t collective(ncclComm_t comm, cudaStream_t stream, Part part, Body body) {
  return add(comm, stream,
             [all = comm->members, rank = comm->rank, number = comm->collectives++, part, body,
              meeting = std::shared_ptr<Meeting>()]() mutable {
               if (!meeting) {
                 std::shared_ptr<Meeting>& there = all->collectives[number];
                 if (!there)
                   there = std::make_shared<Meeting>(
                       Meeting{std::vector<Part>(all->parts.size()), static_cast<int>(all->parts.size())});
                 meeting = there;
                 meeting->parts[rank] = part;
                 if (--meeting->left == 0) {
                   body(meeting->parts);
                   all->collectives.erase(number);
                 }
               }
               return meeting->left == 0;
             });
}

/// Copied when both sides have come: a sender waits for its receiver. `sides`: sender, receiver, and how many
/// messages this rank has sent or received so before.
ncclResult_t message(ncclComm_t comm, cudaStream_t stream, const std::tuple<int, int, std::uint64_t>& sides,
                     const Part& part, std::size_t bytes) {
  return add(
      comm, stream, [all = comm->members, sides, part, bytes, own = std::shared_ptr<Message>()]() mutable {
        if (own) return own->is_done;
        std::shared_ptr<Message>& there = all->messages[sides];
        if (!there) {
          own = there = std::make_shared<Message>(Message{part, bytes});
          return false;
        }
        own = there;
        all->messages.erase(sides);
        if (own->bytes != bytes)
          throw std::logic_error("a message is sent and received in different lengths");
        if (bytes > 0)
          std::memcpy(part.to ? part.to : own->first.to, part.from ? part.from : own->first.from, bytes);
        own->is_done = true;
        return true;
      });
}

}  // namespace

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {from, to}, [=](const std::vector<Part>& parts) {
    std::vector<char> sum(bytes_of(count, type));
    reduce_parts(parts, 0, count, type, operation, sum.data());
    for (const Part& part : parts) std::copy(sum.begin(), sum.end(), static_cast<char*>(part.to));
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {from, to}, [=](const std::vector<Part>& parts) {
    const std::size_t bytes = bytes_of(count, type);
    for (const Part& target : parts)
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memmove(static_cast<char*>(target.to) + r * bytes, parts[r].from, bytes);
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {from, to}, [=](const std::vector<Part>& parts) {
    for (std::size_t r = 0; r < parts.size(); ++r)
      reduce_parts(parts, r * count, count, type, operation, parts[r].to);
  });
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {from, to}, [=](const std::vector<Part>& parts) {
    reduce_parts(parts, 0, count, type, operation, parts[root].to);
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {from, to}, [=](const std::vector<Part>& parts) {
    for (const Part& part : parts) std::memmove(part.to, parts[root].from, bytes_of(count, type));
  });
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(comm, stream, {comm->rank, peer, comm->sent[peer]++}, {from, nullptr},
                 bytes_of(count, type));
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(comm, stream, {peer, comm->rank, comm->received[peer]++}, {nullptr, to},
                 bytes_of(count, type));
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth == 0 && !group.calls.empty()) queue_group();
  return ncclSuccess;
}

namespace alpa::emulation {

void reset_nccl() {
  const std::lock_guard held(lock);
  by_id.clear();
  waiting_for_an_end = 0;
  in_a_circle = released = false;
}

int communicators() { return there_are; }

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
