#include <gmock/gmock.h>
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/h5/tensor_file.h"
#include "tests/temporary_folder.h"

namespace alpa {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Rank 0's temporary folder, known to all.
class SharedFolder {
 public:
  SharedFolder() {
    if (world_rank() == 0) folder_.emplace();
    char name[256] = {};
    if (folder_) folder_->path().string().copy(name, sizeof name - 1);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  ~SharedFolder() { MPI_Barrier(MPI_COMM_WORLD); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

TEST(ParallelTensorFile, RanksWriteTheirRegionsAndEachReadsTheWhole) {
  const SharedFolder folder;
  const auto path = folder.path() / "step-1.h5";
  const int rank = world_rank();
  constexpr std::int64_t rows = 900, columns = 1500;
  // Rank 0 holds the left columns of all rows, rank 1 the right columns, rank 2 nothing of it.
  const std::int64_t half = columns / 2;
  std::vector<float> mine(static_cast<std::size_t>(rows * half));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < half; ++c)
      mine[static_cast<std::size_t>(r * half + c)] = static_cast<float>(r * columns + rank * half + c);
  const std::int32_t count = 41 + rank;
  {
    TensorWriter file(path, "alpa-checkpoint", "1.0", MPI_COMM_WORLD);
    file.attribute("step", 1);
    file.provenance(provenance_here("test", "alpa", ""));
    file.declare("weight", {DType::f32, {rows, columns}});
    file.declare("count", {DType::i32, {}});
    if (rank < 2)
      file.write("weight", {{0, rank * half}, {rows, half}}, mine.data());
    else
      file.write_nothing("weight");
    if (rank == 2)
      file.write("count", {}, &count);
    else
      file.write_nothing("count");
    file.publish();
  }
  const TensorReader file(path, "alpa-checkpoint", "1.0");
  std::vector<float> all(static_cast<std::size_t>(rows * columns)), expected(all.size());
  std::iota(expected.begin(), expected.end(), 0.0f);
  file.read_all("weight", all.data());
  EXPECT_EQ(all, expected);
  std::int32_t count_read = 0;
  file.read_all("count", &count_read);
  EXPECT_EQ(count_read, 43);
  file.verify();
}

}  // namespace
}  // namespace alpa
