#pragma once
#include <memory>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// MPI from start to end of a process. Construct it once, after the signal handlers are in place. One thread of a
/// rank owns MPI. Blocking waits test with back-off, because MPICH busy-polls and ranks may outnumber cores.
class MpiSession {
 public:
  /// Initialises MPI. Throws Error(allocation) when SLURM_NTASKS > 1 but MPI sees one rank (wrong `srun --mpi`).
  MpiSession();

  /// Leaves MPI. With MPICH 4.0.2 over TCP MPI_Finalize can hang (pmodels/mpich PR 6596): after a barrier a timer
  /// ends the process with `exit_status` should it take longer than a few seconds.
  void finish(int exit_status) noexcept;

  /// Ends all ranks at once with this status; for a failure that only this rank can see. Does not return.
  [[noreturn]] void abort(int exit_status) noexcept;

  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const;
  int size() const;
  int node() const;            ///< index of this rank's node (ranks that share memory), in order of first rank
  int nodes() const;
  int rank_on_node() const;    ///< index among the ranks of its node
  int ranks_on_node() const;

  /// All ranks, for buffers of a CPU device (and for CUDA buffers staged through host memory).
  std::unique_ptr<Communicator> make_communicator(Device&) const;

  /// For parallel HDF5: the world communicator as MPI's own handle (MPI_Comm is an int in MPICH).
  int native_world() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// NCCL over the ranks of `bootstrap` (the unique id travels by its broadcast). Throws Error(allocation) where this
/// build has no NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Device&, Communicator& bootstrap);

}  // namespace alpa
