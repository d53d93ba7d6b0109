#include <gmock/gmock.h>
#include <mpi.h>

#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/h5/tensor_file.h"
#include "tests/all_ranks.h"
#include "tests/h5/damage.h"
#include "tests/h5/limits.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// 900 rows of 3000 are three chunks.
constexpr std::int64_t rows = 900, columns = 3000;

/// A region of the tensor whose element i is i, cut out.
struct Cut {
  explicit Cut(TensorRegion cut_region) : region(std::move(cut_region)) {
    for (std::int64_t r = 0; r < region.count[0]; ++r)
      for (std::int64_t c = 0; c < region.count[1]; ++c)
        values.push_back(static_cast<float>((region.offset[0] + r) * columns + region.offset[1] + c));
  }
  TensorRegion region;
  std::vector<float> values;
};

/// On three ranks. The folder is rank 0's.
class ParallelTensorFile : public ::testing::Test {
 protected:
  ParallelTensorFile() {
    if (rank_ == 0) folder_.emplace();
    char name[256] = {};
    if (folder_) folder_->path().string().copy(name, sizeof name - 1);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = std::filesystem::path(name) / "step-1.h5";
  }
  ~ParallelTensorFile() override { MPI_Barrier(MPI_COMM_WORLD); }

  void write(
      const std::vector<Cut>& mine, const std::function<void()>& before_write = [] {}) {
    TensorWriter file(path_, "alpa-checkpoint", "1.0", ranks_.writing());
    file.attribute("step", 1);
    file.declare("weight", {DType::f32, {rows, columns}});
    file.declare("count", {DType::i32, {}});
    std::vector<TensorPart> parts;
    for (const Cut& cut : mine) parts.push_back({cut.region, cut.values.data()});
    const std::int32_t count = 40 + rank_;
    if (rank_ == 2)
      file.write("count", {}, &count);
    else
      file.write_nothing("count");
    before_write();
    file.write("weight", parts);
    file.publish();
  }

  void expect_whole() const {
    const TensorReader file(path_, "alpa-checkpoint", "1.0");
    std::vector<float> all(rows * columns), expected(all.size());
    std::iota(expected.begin(), expected.end(), 0.0f);
    file.read_all("weight", all.data());
    EXPECT_TRUE(all == expected);
    std::int32_t count = 0;
    file.read_all("count", &count);
    EXPECT_EQ(count, 42);
    file.verify();
  }

  const int rank_ = world_rank();
  const AllRanks ranks_;
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

TEST_F(ParallelTensorFile, IsPutTogetherFromRowsOfUnequalRanks) {
  const std::int64_t first[] = {0, 250, 601, 900};
  write({Cut{{{first[rank_], 0}, {first[rank_ + 1] - first[rank_], columns}}}});
  expect_whole();
}

TEST_F(ParallelTensorFile, IsPutTogetherFromColumns) {
  write({Cut{{{0, rank_ * 1000}, {rows, 1000}}}});
  expect_whole();
}

TEST_F(ParallelTensorFile, IsWrittenByOneRankWhereTheOthersHoldNothing) {
  write(rank_ == 1 ? std::vector<Cut>{Cut{{{0, 0}, {rows, columns}}}} : std::vector<Cut>{});
  expect_whole();
}

TEST_F(ParallelTensorFile, IsWrittenInTurnsByReplicas) {
  write({Cut{{{0, 0}, {rows, columns}}}});
  expect_whole();
}

TEST_F(ParallelTensorFile, IsPutTogetherFromReplicasAndPiecesAlike) {
  // Rank 0 holds the left half; ranks 1 and 2 both the right half, rank 2 in two pieces.
  const std::int64_t half = columns / 2;
  if (rank_ == 0) write({Cut{{{0, 0}, {rows, half}}}});
  if (rank_ == 1) write({Cut{{{0, half}, {rows, half}}}});
  if (rank_ == 2) write({Cut{{{0, half}, {500, half}}}, Cut{{{500, half}, {400, half}}}});
  expect_whole();
}

TEST_F(ParallelTensorFile, HasTheSameBytesHoweverItWasSplit) {
  write({Cut{{{0, rank_ * 1000}, {rows, 1000}}}});
  std::string columns_first;
  if (rank_ == 0) columns_first = bytes_of_file(path_);
  MPI_Barrier(MPI_COMM_WORLD);
  write({Cut{{{rank_ * 300, 0}, {300, columns}}}});
  EXPECT_TRUE(rank_ != 0 || bytes_of_file(path_) == columns_first);
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksWhenOneCannotWrite) {
  for (int failing = 0; failing < 3; ++failing) {
    std::optional<FileSizeLimit> full;
    EXPECT_THAT(
        [&] {
          write({Cut{{{rank_ * 300, 0}, {300, columns}}}}, [&] {
            if (rank_ == failing) full.emplace(100'000);
          });
        },
        ThrowsMessage<Error>(AllOf(HasSubstr("rank " + std::to_string(failing) + ": cannot write"),
                                   HasSubstr("File too large"), HasSubstr("free some space"))));
    full.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_TRUE(std::filesystem::is_empty(path_.parent_path()));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksWhenOneHasAWrongRegion) {
  EXPECT_THAT(
      [&] {
        write({Cut{{{rank_ * 300, 0}, {rank_ == 1 ? 301 : 300, columns}}},
               Cut{{{rank_ * 300, rank_ == 2 ? 1 : 0}, {300, columns}}}});
      },
      ThrowsMessage<Error>(
          HasSubstr("rank 2: tensor 'weight': region 300x3000 at offset 600x1 is not inside 900x3000")));
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksWhenAPartIsMissing) {
  EXPECT_THAT(
      [&] {
        write({Cut{{{rank_ * 300, 0}, {rank_ == 1 ? 299 : 300, columns}}}});
      },
      ThrowsMessage<Error>(HasSubstr("tensor 'weight': no rank writes region 1x3000 at offset 599x0")));
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksWhereTheFolderIsMissing) {
  path_ = path_.parent_path() / "no" / "step-1.h5";
  EXPECT_THAT([&] { write({}); }, ThrowsMessage<Error>(HasSubstr("rank 0: cannot write '" + path_.string())));
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksThatDeclareOrWriteDifferently) {
  const float value = 1;
  TensorWriter declared(path_, "alpa-checkpoint", "1.0", ranks_.writing());
  declared.declare("w", {DType::f32, {rank_ == 1 ? 2 : 1}});
  EXPECT_THAT([&] { declared.write_nothing("w"); },
              ThrowsMessage<Error>(HasSubstr("declare different tensors")));

  TensorWriter written(path_, "alpa-checkpoint", "1.0", ranks_.writing());
  written.declare("v", {DType::f32, {}});
  written.declare("w", {DType::f32, {}});
  EXPECT_THAT([&] { written.write(rank_ == 2 ? "w" : "v", {}, &value); },
              ThrowsMessage<Error>(HasSubstr("write different tensors at once")));
}

TEST_F(ParallelTensorFile, CanBeWrittenByOneRankAlone) {
  if (rank_ != 0) return;
  const float value = 2.5;
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.declare("w", {DType::f32, {}});
  file.write("w", {}, &value);
  file.publish();
  float read = 0;
  TensorReader(path_, "alpa-checkpoint", "1.0").read_all("w", &read);
  EXPECT_EQ(read, 2.5f);
}

}  // namespace
}  // namespace alpa
