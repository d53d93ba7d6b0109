// Ranks that wait for one another at files: a frozen one is named in time, a slow one that moves on is waited
// for.
#include <gmock/gmock.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/checkpoint/first_rank.h"
#include "libalpa/comm/peer_watch.h"
#include "tests/all_ranks.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/h5/shared_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kFrozen = 1;

/// Ranks whose waits have a limit. They stay: a communicator of MPI that comes after one with messages under
/// way would receive them.
AllRanks& ranks_waiting(double timeout_s) {
  static std::vector<std::unique_ptr<AllRanks>> all;
  PeerWatch watch;
  watch.limits = {0, timeout_s};
  watch.places = {"rank 0 on a", "rank 1 on a", "rank 2 on b"};
  watch.option = "--file-timeout";
  return *all.emplace_back(std::make_unique<AllRanks>(std::make_shared<const PeerWatch>(std::move(watch))));
}

class FileWaits : public ::testing::Test {
 protected:
  FileWaits() {
    const pid_t mine = getpid();
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, processes_.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  }

  /// Stops this rank as a whole, until the others have met an error and wake it.
  void freeze() const {
    if (rank_ == kFrozen) raise(SIGSTOP);
  }

  /// What `body` throws. The frozen rank is woken when all others have met theirs.
  std::string error_of(const std::function<void()>& body) const {
    std::string text = "no error";
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::peer);
      text = error.what();
    }
    char token = 0;
    if (rank_ == 2) MPI_Send(&token, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (rank_ == 0) {
      MPI_Recv(&token, 1, MPI_CHAR, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      kill(processes_[kFrozen], SIGCONT);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return text;
  }

  void expect_named(const std::string& error) const {
    if (rank_ == kFrozen) return;
    EXPECT_THAT(error, AllOf(HasSubstr("waiting for rank 1 on a for "), HasSubstr("--file-timeout")));
  }

  const int rank_ = mpi_session().rank();
  std::array<pid_t, 3> processes_{};
};

TEST_F(FileWaits, ARankThatIsFrozenInASaveIsNamed) {
  const SharedFolder folder;
  const AllRanks& ranks = ranks_waiting(0.3);
  StatesInMemory mine = StatesInMemory::none(900, 700);
  mine.add_tile(0, {300 * rank_, 0}, {300, 700}, 0.5f);
  expect_named(error_of([&] {
    const std::unique_ptr<TensorWriter> file =
        checkpoint_writer(folder.path() / "step.h5", {}, mine.graph, mine.tiles, {}, ranks.writing());
    freeze();
    file->publish();
  }));
}

TEST_F(FileWaits, ARankThatIsFrozenInALoadIsNamed) {
  const AllRanks& ranks = ranks_waiting(0.3);
  expect_named(error_of([&] {
    read_together(ranks.all(), ranks.stream(), [&](const BytesRead& read) {
      read(100);
      freeze();
    });
  }));
}

TEST_F(FileWaits, ASlowRankThatMovesOnIsWaitedFor) {
  const AllRanks& ranks = ranks_waiting(1);
  const auto verify_slowly = [&](const BytesRead& read) {
    for (int piece = 0; piece < 16; ++piece) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      read(64 << 20);
    }
    return std::string("verified");
  };
  EXPECT_EQ(text_of_first_rank(ranks.all(), ranks.stream(), verify_slowly), "verified");
}

}  // namespace
}  // namespace alpa
