#include "libalpa/h5/rows_writer.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/rows.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class RowsWriter : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "data.h5";
};

TEST_F(RowsWriter, WritesRowsThatAreReadBackAsTheyCame) {
  // Rows of 24 bytes and of 4: their chunks end at different rows, the last of each is not full.
  constexpr std::int64_t rows = 40'000;
  H5RowsWriter file(path_, "alpa-data", "1.0");
  const int images = file.declare("/images", RowsType::f32, {rows, 2, 3});
  const int labels = file.declare("/labels", RowsType::i32, {rows});
  for (std::int32_t row = 0; row < rows; ++row) {
    const float image[] = {static_cast<float>(row), 1, 2, 3, 4, 0.5f};
    file.append(images, 1, image);
    file.append(labels, 1, &row);
  }
  file.publish();

  const H5Rows read(path_, "/images", ""), ids(path_, "/labels", "");
  EXPECT_EQ(read.extent(), (Shape{rows, 2, 3}));
  std::vector<float> image(6);
  std::vector<std::int32_t> all(rows), expected(rows);
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{2730}, std::int64_t{2731}, rows - 1}) {
    read.read(row, 1, image.data());
    EXPECT_THAT(image, ElementsAre(static_cast<float>(row), 1, 2, 3, 4, 0.5f));
  }
  ids.read(0, rows, all.data());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
  H5Reader(path_, "alpa-data", "1.0").verify();  // every checksum
}

TEST_F(RowsWriter, StoresNarrowTypesStringsAndAttributes) {
  const std::uint8_t bytes[] = {1, 255};
  const std::uint16_t words[] = {65535, 2};
  const std::vector<std::string> names{"cat", "d\xc3\xb6g"};
  H5RowsWriter file(path_, "alpa-data", "1.0");
  const int narrow = file.declare("/bytes", RowsType::u8, {2}),
            wide = file.declare("/words", RowsType::u16, {2});
  file.strings("/names", names);
  file.attribute("/bytes", "highest", std::int64_t{255});
  file.append(wide, 2, words);
  file.append(narrow, 2, bytes);
  file.publish();
  const H5Reader read(path_, "alpa-data", "1.0");
  EXPECT_THAT(read.int64s("/bytes"), ElementsAre(1, 255));
  EXPECT_THAT(read.int64s("/words"), ElementsAre(65535, 2));
  EXPECT_EQ(read.strings("/names"), names);
  EXPECT_EQ(read.int64_attribute("/bytes", "highest"), 255);
  EXPECT_TRUE(H5Rows(path_, "/bytes", "").is_bytes());
  EXPECT_FALSE(H5Rows(path_, "/words", "").is_bytes());
}

TEST_F(RowsWriter, StoresLongIntegersInRowsOrAsShortColumns) {
  const std::vector<std::int64_t> places{0, std::int64_t{1} << 40, -3};
  H5RowsWriter file(path_, "alpa-data", "1.0");
  const int rows = file.declare("/rows", RowsType::i64, {3});
  file.column("/facts/places", places);
  file.attribute("/facts", "many", std::int64_t{3});
  file.append(rows, 3, places.data());
  file.publish();
  for (const char* dataset : {"/rows", "/facts/places"}) {
    std::vector<std::int64_t> read(3);
    H5Rows(path_, dataset, "").read(0, 3, read.data());
    EXPECT_EQ(read, places) << dataset;
    EXPECT_TRUE(has_dataset(path_, dataset));
  }
  EXPECT_EQ(H5Reader(path_, "alpa-data", "1.0").int64_attribute("/facts", "many"), 3);
  for (const char* other : {"/facts", "/columns", "/facts/places/more"})
    EXPECT_FALSE(has_dataset(path_, other)) << other;
}

TEST_F(RowsWriter, LeavesNothingBehindUnlessPublished) {
  {
    H5RowsWriter file(path_, "alpa-data", "1.0");
    const float row[] = {1, 2};
    file.append(file.declare("/images", RowsType::f32, {3, 2}), 1, row);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(RowsWriter, RefusesRowsLargerThanAChunkMayBe) {
  H5RowsWriter file(path_, "alpa-data", "1.0");
  EXPECT_THAT(
      [&] {
        file.declare("/images", RowsType::u8, {1, (1 << 30) + 1});
      },
      ThrowsMessage<Error>(HasSubstr("a row of '/images' has 1073741825 bytes")));
}

}  // namespace
}  // namespace alpa
