#include <gmock/gmock.h>
#include <mpi.h>

#include <filesystem>

#include "libalpa/base/error.h"
#include "tests/all_ranks.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/h5/shared_folder.h"
#include "tests/mpi_main.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A pipeline of rank 0 (weights) and rank 1 (bias), with the scalar on ranks 1 and 2 and the weights'
/// masters split by rows over all.
StatesInMemory share_of(int rank, float salt) {
  StatesInMemory mine = StatesInMemory::none(900, 700);
  if (rank == 0) mine.add_tile(0, {0, 0}, {900, 700}, salt);
  if (rank == 1) mine.add_tile(2, {0}, {700}, salt);
  if (rank > 0) mine.add_tile(3, {}, {}, salt);
  mine.add_tile(1, {300 * rank, 0}, {300, 700}, salt);
  return mine;
}

TEST(ParallelCheckpoint, OfThreeRanksIsTheFileThatOneWouldWrite) {
  const SharedFolder folder;
  const AllRanks ranks;
  const int rank = mpi_session().rank();
  share_of(rank, 0.5f).save(folder.path() / "together.h5", 7, ranks.writing());
  const std::string name = folder.path().string();
  if (rank == 0) {
    StatesInMemory::whole(0.5f, 900, 700).save(folder.path() / "alone.h5", 7);
    EXPECT_EQ(run_command("h5diff --exclude-path /provenance " + name + "/together.h5 " + name + "/alone.h5")
                  .status,
              0);
  }
  StatesInMemory expected = StatesInMemory::none(900, 700), read = expected;
  for (StatesInMemory* states : {&expected, &read})
    states->add_tile(1, {0, 200 * rank}, {900, 200}, states == &expected ? 0.5f : -1);
  EXPECT_EQ(load_checkpoint(folder.path() / "together.h5", read.graph, read.tiles).samples, 56);
  EXPECT_EQ(read.storage, expected.storage);
}

TEST(ParallelCheckpoint, FailsAlikeOnAllRanks) {
  const SharedFolder folder;
  const AllRanks ranks;
  if (mpi_session().rank() == 0) std::filesystem::create_directories(folder.path() / "taken.h5");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_THAT([&] { share_of(mpi_session().rank(), 0).save(folder.path() / "taken.h5", 7, ranks.writing()); },
              ThrowsMessage<Error>(HasSubstr("cannot write")));
}

}  // namespace
}  // namespace alpa
