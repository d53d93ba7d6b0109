#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libalpa/comm/communicator.h"
#include "libalpa/comm/core_shares.h"
#include "libalpa/comm/peer_watch.h"

namespace alpa {

/// Who met a failure.
enum class FailureReach { some_ranks, every_rank, every_rank_alike };

/// MPI from start to end of a process. Construct it once, after the signal handlers are in place. One thread
/// of a rank owns MPI. Waits test with back-off, because MPICH busy-polls and ranks may outnumber cores.
class MpiSession {
 public:
  /// Initialises MPI. `expected_ranks` is what the job was started with (SLURM_NTASKS), 0 where that is not
  /// known. Throws Error(allocation) when it is above 1 but MPI sees one rank: each process then runs alone,
  /// because the launcher and MPI do not know each other (wrong `srun --mpi`).
  explicit MpiSession(int expected_ranks);

  /// From now on waits of all communicators made here (not those of NCCL, or MPI's own) that
  /// take long are reported as "waiting for rank 1 on node7 for 3m00s, in all-reduce of 4.00 KiB", and in the end
  /// given up. Time in which this rank was itself suspended does not count. Collective; once, before the
  /// first communicator is made.
  void watch(HangLimits, const std::string& node_name, std::function<void(const std::string&)> report);
  /// As given to watch(); nullptr before it. For waits that are not MPI's (DeviceWaits).
  const PeerWatch* peer_watch() const;

  /// Leaves MPI; call it on every rank, also after a failure that all ranks have found alike. With
  /// MPICH 4.0.2 over TCP MPI_Finalize can hang (pmodels/mpich PR 6596): after a barrier a timer ends the
  /// process with `exit_status` should it take longer than a few seconds.
  void finish(int exit_status) noexcept;

  /// For a rank that has failed and wants to know how to leave. Waits up to `timeout_s` for all other ranks
  /// to call this too; some_ranks when they do not: they are well, stuck, or gone, and only abort() frees
  /// them. Ranks that give the same `failure` (a digest of what went wrong) have failed alike.
  FailureReach failure_reach(std::uint64_t failure, double timeout_s) noexcept;

  /// Ends all ranks at once with this status; for a failure that only this rank can see. Does not return.
  [[noreturn]] void abort(int exit_status) noexcept;

  /// Aborts with status 1 unless finish() was called: other ranks must not wait for this one for ever.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const;
  int size() const;
  int node() const;  ///< index of this rank's node (ranks that share memory), in order of first rank
  int nodes() const;
  int rank_on_node() const;  ///< index among the ranks of its node
  int ranks_on_node() const;
  int cores_of_node() const;  ///< that the ranks of its node may run on (their affinity masks, joined)
  const CoreShare& core_share() const;  ///< this rank's part of them, by the masks at the start

  /// All ranks, for buffers of that device (those of a GPU, or of checked-cpu, travel through its staging
  /// memory). Collective over all ranks. The communicator must be gone before finish(), or be unused after
  /// it.
  std::unique_ptr<Communicator> make_communicator(Device&) const;

  /// The same with a watch of its own.
  std::unique_ptr<Communicator> make_communicator(Device&, std::shared_ptr<const PeerWatch>) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// NCCL over the ranks of `bootstrap`, a communicator for buffers of the same `device` (the unique id travels
/// by its broadcast). Collective. Throws Error(allocation) where this build has no NCCL.
///
/// Calls are queued on the given stream. Reductions have NCCL's own order: fixed, but not by rank. Each pair
/// of ranks that connect() names has its own way for its messages, so that a send holds up neither the caller's
/// stream nor other messages. A communicator and those split from it share these ways: messages between two
/// ranks are matched in the order sent over all of them. A message occupies a part of the GPU until it is
/// received, and many at once want more hardware queues than the default: CUDA_DEVICE_MAX_CONNECTIONS=32.
/// A message of another size than expected is not noticed. connect() takes the longer, the more others a rank
/// has messages with; it and split() want no calls under way.
std::unique_ptr<Communicator> make_nccl_communicator(Device& device, Communicator& bootstrap);

}  // namespace alpa
