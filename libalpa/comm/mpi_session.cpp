#include "libalpa/comm/mpi_session.h"

#include <fmt/core.h>
#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_communicator.h"
#include "libalpa/comm/mpi_transport.h"
#include "libalpa/comm/staged_communicator.h"

namespace alpa {
namespace {

constexpr std::chrono::seconds kFinalizeGrace{5};
constexpr std::chrono::milliseconds kLastWordsGrace{300};
constexpr std::size_t kNameBytes = 64;

void initialise_mpi() {
  int provided = 0;
  // A rank's calls all come from one thread at a time, which need not be the one that started MPI.
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_SERIALIZED)
    throw Error(ErrorKind::run_time, "this MPI serves only the thread that started it",
                "use an MPI with thread support");
  // Naps of the waits' back-off end within 1 us of what was asked, not 50; threads made later inherit it.
  prctl(PR_SET_TIMERSLACK, 1000UL);
}

MPI_Comm duplicate_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return copy;
}

struct Node {
  int index = 0, count = 1, rank = 0, ranks = 1, cores = 1;
  CoreShare own_cores;
};

/// [rank of the node] Launchers and taskset bind ranks to cores, all to the same ones or each to its own.
std::vector<Cores> cores_of_ranks(MPI_Comm neighbours, int ranks) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, sets.data(), sizeof mine, MPI_BYTE, neighbours),
            "MPI_Allgather");
  std::vector<Cores> all;
  for (const cpu_set_t& set : sets) all.push_back(cores_in(set));
  return all;
}

/// By shared memory and not by host name, which container and virtual hosts share.
Node find_node(int world_rank, int world_size) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &neighbours),
            "MPI_Comm_split_type");
  const MpiTransport owner(neighbours);
  Node node;
  node.rank = owner.rank();
  node.ranks = owner.size();
  const std::vector<Cores> allowed = cores_of_ranks(neighbours, node.ranks);
  std::set<int> together;
  for (const Cores& cores : allowed) together.insert(cores.begin(), cores.end());
  node.cores = std::max(1, static_cast<int>(together.size()));
  node.own_cores = core_share(allowed, node.rank);
  int first = world_rank;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT, 0, neighbours), "MPI_Bcast");
  std::vector<int> firsts(static_cast<std::size_t>(world_size));
  check_mpi(MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  node.count = static_cast<int>(firsts.size());
  node.index = static_cast<int>(std::find(firsts.begin(), firsts.end(), first) - firsts.begin());
  return node;
}

void flush_output() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

}  // namespace

struct MpiSession::State {
  std::shared_ptr<const PeerWatch> watch;
  std::optional<MpiTransport> world;
  // Of its own, so that a rank that fails meets no rank that finishes or works.
  std::optional<MpiTransport> failures;
  // Here, because they stay in use when the wait for the other ranks is given up.
  std::array<std::uint64_t, 2> failure{}, least_failure{};
  int rank = 0, size = 1;
  Node node;
  bool has_finished = false;
};

MpiSession::MpiSession(int expected_ranks) : state_(std::make_unique<State>()) {
  initialise_mpi();
  state_->world.emplace(duplicate_world());
  state_->failures.emplace(duplicate_world());
  state_->rank = state_->world->rank();
  state_->size = state_->world->size();
  if (expected_ranks > 1 && size() == 1) {
    state_->world.reset();
    state_->failures.reset();
    MPI_Finalize();  // alone, so it waits for nobody
    throw Error(ErrorKind::allocation,
                fmt::format("the job has {} tasks, but MPI sees one rank: every task would train alone",
                            expected_ranks),
                "srun --mpi=pmi2 (srun --mpi=list shows what this Slurm offers)");
  }
  state_->node = find_node(rank(), size());
}

MpiSession::~MpiSession() {
  if (!state_->has_finished) abort(static_cast<int>(ErrorKind::run_time));
}

void MpiSession::watch(HangLimits limits, const std::string& node_name,
                       std::function<void(const std::string&)> report) {
  const auto ranks = static_cast<std::size_t>(size());
  char mine[kNameBytes] = {};
  node_name.copy(mine, kNameBytes - 1);
  std::vector<char> all(ranks * kNameBytes);
  check_mpi(MPI_Allgather(mine, kNameBytes, MPI_CHAR, all.data(), kNameBytes, MPI_CHAR, MPI_COMM_WORLD),
            "MPI_Allgather");
  std::vector<std::string> places;
  for (std::size_t r = 0; r < ranks; ++r)
    places.push_back(fmt::format("rank {} on {}", r, &all[r * kNameBytes]));
  state_->watch = std::make_shared<PeerWatch>(PeerWatch{limits, std::move(places), std::move(report)});
  state_->world.emplace(duplicate_world(), state_->watch);
}

const PeerWatch* MpiSession::peer_watch() const { return state_->watch.get(); }

void MpiSession::finish(int exit_status) noexcept {
  if (state_->has_finished) return;
  state_->has_finished = true;
  flush_output();
  const auto left =
      std::make_shared<std::atomic<bool>>(false);  // owned by the timer too, which may outlive this call
  try {
    state_->world->begin("the end of the program");
    state_->world->barrier();
    std::thread([left, exit_status] {
      std::this_thread::sleep_for(kFinalizeGrace);
      if (!*left) _exit(exit_status);
    }).detach();
  } catch (const std::exception&) {
    // A rank is gone or hangs, or there is no thread for the timer: MPI_Finalize might never return.
    _exit(exit_status == 0 ? static_cast<int>(ErrorKind::peer) : exit_status);
  }
  state_->world.reset();
  state_->failures.reset();
  MPI_Finalize();
  *left = true;
}

FailureReach MpiSession::failure_reach(std::uint64_t failure, double timeout_s) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  // The smallest of x and of its complement show whether all x are equal.
  state_->failure = {failure, ~failure};
  auto& least = state_->least_failure;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Iallreduce(state_->failure.data(), least.data(), 2, MPI_UINT64_T, MPI_MIN,
                     state_->failures->native(), &request) != MPI_SUCCESS)
    return FailureReach::some_ranks;
  int done = 0;
  while (true) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return FailureReach::some_ranks;
    if (done) break;
    if (std::chrono::steady_clock::now() >= deadline) return FailureReach::some_ranks;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return least[0] == ~least[1] ? FailureReach::every_rank_alike : FailureReach::every_rank;
}

void MpiSession::abort(int exit_status) noexcept {
  flush_output();
  // mpiexec drops what it has not read by then, and that would be the reason.
  std::this_thread::sleep_for(kLastWordsGrace);
  // A launcher that does not answer must not keep this rank: it ends the job when a rank is gone.
  try {
    std::thread([exit_status] {
      std::this_thread::sleep_for(kFinalizeGrace);
      _exit(exit_status);
    }).detach();
  } catch (const std::system_error&) {
  }
  MPI_Abort(MPI_COMM_WORLD, exit_status);
  _exit(exit_status);
}

int MpiSession::rank() const { return state_->rank; }
int MpiSession::size() const { return state_->size; }
int MpiSession::node() const { return state_->node.index; }
int MpiSession::nodes() const { return state_->node.count; }
int MpiSession::rank_on_node() const { return state_->node.rank; }
int MpiSession::ranks_on_node() const { return state_->node.ranks; }
int MpiSession::cores_of_node() const { return state_->node.cores; }
const CoreShare& MpiSession::core_share() const { return state_->node.own_cores; }

std::unique_ptr<Communicator> MpiSession::make_communicator(Device& device) const {
  return make_communicator(device, state_->watch);
}

std::unique_ptr<Communicator> MpiSession::make_communicator(Device& device,
                                                            std::shared_ptr<const PeerWatch> watch) const {
  state_->world->begin("the making of a communicator");
  state_->world->barrier();  // the wait of MPI_Comm_dup is under no watch
  std::unique_ptr<Communicator> host = make_mpi_communicator(duplicate_world(), std::move(watch));
  if (device.kind() == DeviceKind::cpu || device.kind() == DeviceKind::emulated) return host;
  return make_staged_communicator(device, std::move(host));
}

}  // namespace alpa
