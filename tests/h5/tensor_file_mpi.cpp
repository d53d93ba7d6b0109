#include <gmock/gmock.h>
#include <mpi.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

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

  enum class How { at_once, in_background };

  /// `as_it_begins` is called when this rank's values of the weight are first read: the file is laid out
  /// then.
  void write(
      const std::vector<Cut>& mine, const std::function<void()>& as_it_begins = [] {},
      How how = How::at_once) {
    TensorWriter file(path_, "alpa-checkpoint", "1.0", ranks_.writing());
    file.attribute("step", 1);
    const std::int32_t count = 42;
    std::vector<TensorPart> of_count, of_weight;
    if (rank_ == 2) of_count.push_back({{}, &count});
    bool has_begun = false;
    for (const Cut& cut : mine)
      of_weight.push_back({cut.region, cut.region.count, [&](std::int64_t first, std::span<std::byte> into) {
                             if (!std::exchange(has_begun, true)) as_it_begins();
                             std::copy_n(std::as_bytes(std::span(cut.values)).begin() + first, into.size(),
                                         into.begin());
                           }});
    file.tensor("count", {DType::i32, {}}, of_count);
    file.tensor("weight", {DType::f32, {rows, columns}}, of_weight);
    if (how == How::in_background) file.write_in_background();
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

/// Bytes that this process has given to the system to write so far.
std::int64_t bytes_given() {
  std::ifstream counts("/proc/self/io");
  for (std::string name; counts >> name;) {
    std::int64_t count = 0;
    counts >> count;
    if (name == "wchar:") return count;
  }
  return 0;
}

TEST_F(ParallelTensorFile, IsWrittenInEvenSharesByReplicas) {
  const Shape shape{9000, 1000};
  const std::vector<float> values(9'000'000);
  TensorWriter file(path_, "alpa-checkpoint", "1.0", ranks_.writing());
  for (const char* name : {"parameter", "moment"})
    file.tensor(name, {DType::f32, shape}, {{{{0, 0}, shape}, values.data()}});
  std::int64_t share = -bytes_given();
  file.publish();
  share += bytes_given();
  std::int64_t total = 0;
  MPI_Allreduce(&share, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GE(total, 2 * 9'000'000 * 4);
  EXPECT_NEAR(static_cast<double>(share), static_cast<double>(total) / 3, static_cast<double>(total) / 30);
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

TEST_F(ParallelTensorFile, HasTheSameBytesWrittenInTheBackground) {
  const std::vector<Cut> mine{Cut{{{0, rank_ * 1000}, {rows, 1000}}}};
  write(mine);
  std::string at_once;
  if (rank_ == 0) at_once = bytes_of_file(path_);
  MPI_Barrier(MPI_COMM_WORLD);
  write(
      mine, [] {}, How::in_background);
  EXPECT_TRUE(rank_ != 0 || bytes_of_file(path_) == at_once);
}

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksWhenOneCannotWrite) {
  for (const How how : {How::at_once, How::in_background})
    for (int failing = 0; failing < 3; ++failing) {
      std::optional<FileSizeLimit> full;
      const auto fill_disk = [&] {
        if (rank_ == failing) full.emplace(100'000);
      };
      EXPECT_THAT(
          [&] {
            write({Cut{{{rank_ * 300, 0}, {300, columns}}}}, fill_disk, how);
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

TEST_F(ParallelTensorFile, FailsAlikeOnAllRanksThatDescribeDifferentTensors) {
  TensorWriter file(path_, "alpa-checkpoint", "1.0", ranks_.writing());
  file.tensor("w", {DType::f32, {rank_ == 1 ? 2 : 1}}, {});
  EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("describe different tensors")));
}

TEST_F(ParallelTensorFile, CanBeWrittenByOneRankAlone) {
  if (rank_ != 0) return;
  const float value = 2.5;
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.tensor("w", {DType::f32, {}}, {{{}, &value}});
  file.publish();
  float read = 0;
  TensorReader(path_, "alpa-checkpoint", "1.0").read_all("w", &read);
  EXPECT_EQ(read, 2.5f);
}

}  // namespace
}  // namespace alpa
