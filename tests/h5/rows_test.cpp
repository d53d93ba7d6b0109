#include "libalpa/h5/rows.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <fstream>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Rows : public ::testing::Test {
 protected:
  template <class Integer>
  void write(const std::vector<Integer>& values) {
    H5Writer file(path_, "somebody-else", "7.0");
    file.column("/tokens", std::span<const Integer>(values), "1");
    file.column("/loss", std::vector<double>{0.5}, "1");
    file.array("/pairs", std::vector<std::int32_t>{1, 2, 3, 4}, {2, 2}, "1");
    file.publish();
  }

  std::vector<std::int32_t> read(std::int64_t first, std::size_t count) const {
    std::vector<std::int32_t> values(count);
    H5Rows(path_, "/tokens", "").read(first, static_cast<std::int64_t>(count), values.data());
    return values;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "tokens.h5";
};

TEST_F(Rows, ReadsPiecesOfAFileOfAnyFormat) {
  std::vector<std::int32_t> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7);
  write(values);
  EXPECT_EQ(H5Rows(path_, "/tokens", "").extent(), Shape{300'000});
  EXPECT_THAT(read(0, 3), ElementsAre(0, 7, 14));
  EXPECT_THAT(read(299'998, 2), ElementsAre(2'099'986, 2'099'993));
  EXPECT_THAT(read(300'000, 0), ElementsAre());
}

TEST_F(Rows, LetsNoWiderValueWrapAround) {
  write(std::vector<std::int64_t>{5, std::int64_t{1} << 32, -(std::int64_t{1} << 40)});
  EXPECT_THAT(read(0, 3), ElementsAre(5, INT32_MAX, INT32_MIN));
}

TEST_F(Rows, ReadsRowsOfAnyShapeAsTheTypeWanted) {
  write(std::vector<std::int32_t>{1});
  const H5Rows pairs(path_, "/pairs", "");
  EXPECT_TRUE(pairs.is_integer());
  EXPECT_EQ(pairs.extent(), (Shape{2, 2}));
  std::vector<float> numbers(2);
  pairs.read(1, 1, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(3, 4));
  const H5Rows loss(path_, "/loss", "");
  EXPECT_FALSE(loss.is_integer());
  loss.read(0, 1, numbers.data());
  EXPECT_EQ(numbers[0], 0.5f);
}

/// How a dataset of 10 x 3 numbers, 0, 7, 14 ..., lies in its file.
struct Layout {
  const char* name;
  hid_t stored = H5T_STD_I32LE;
  std::vector<hsize_t> chunk = {};  ///< {}: contiguous
  bool checksums = false;
  int deflate = 0;
  hsize_t user_block = 0;
};

constexpr hsize_t kRows = 10, kColumns = 3;

void write_numbers(const std::filesystem::path& path, const Layout& layout) {
  const hid_t of_file = H5Pcreate(H5P_FILE_CREATE), of_dataset = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_userblock(of_file, layout.user_block);
  if (!layout.chunk.empty()) H5Pset_chunk(of_dataset, 2, layout.chunk.data());
  if (layout.deflate > 0) H5Pset_deflate(of_dataset, static_cast<unsigned>(layout.deflate));
  if (layout.checksums) H5Pset_fletcher32(of_dataset);
  const hsize_t extent[] = {kRows, kColumns};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, of_file, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, extent, nullptr);
  const hid_t set = H5Dcreate2(file, "/numbers", layout.stored, space, H5P_DEFAULT, of_dataset, H5P_DEFAULT);
  std::vector<std::int32_t> numbers(kRows * kColumns);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i * 7);
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(of_dataset);
  H5Pclose(of_file);
}

/// IEEE half precision.
hid_t half_type() {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

TEST_F(Rows, AreTheSameHoweverTheyLieInTheFile) {
  const auto expect_same = [&](const Layout& layout, bool is_plain) {
    SCOPED_TRACE(layout.name);
    write_numbers(path_, layout);
    const H5Rows rows(path_, "/numbers", "");
    EXPECT_EQ(rows.is_plain(), is_plain);
    EXPECT_GT(rows.held_bytes() + (is_plain ? 0 : 1), 0);
    for (std::size_t first = 0; first < kRows; ++first)
      for (std::size_t end = first; end <= kRows; ++end) {
        std::vector<float> numbers((end - first) * kColumns), expected(numbers.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = static_cast<float>((first * kColumns + i) * 7);
        rows.read(static_cast<std::int64_t>(first), static_cast<std::int64_t>(end - first), numbers.data());
        EXPECT_EQ(numbers, expected);
        if (!rows.is_integer()) continue;
        std::vector<std::int32_t> integers(numbers.size());
        rows.read(static_cast<std::int64_t>(first), static_cast<std::int64_t>(end - first), integers.data());
        EXPECT_EQ(std::vector<float>(integers.begin(), integers.end()), expected);
      }
  };
  expect_same({"contiguous"}, true);
  expect_same({.name = "contiguous, of bytes", .stored = H5T_STD_U8LE}, true);
  expect_same({.name = "contiguous, of short integers", .stored = H5T_STD_I16LE}, true);
  expect_same({.name = "contiguous, of long integers", .stored = H5T_STD_U64LE}, true);
  expect_same({.name = "contiguous, of single precision", .stored = H5T_IEEE_F32LE}, true);
  const hid_t half = half_type();
  expect_same({.name = "contiguous, of half precision", .stored = half}, true);
  H5Tclose(half);
  expect_same({.name = "contiguous, of double precision", .stored = H5T_IEEE_F64LE}, true);
  expect_same({.name = "contiguous, the high byte first", .stored = H5T_STD_I32BE}, false);
  expect_same({.name = "behind a user block", .user_block = 512}, false);
  expect_same({.name = "chunks of rows", .chunk = {4, kColumns}}, true);
  expect_same({.name = "chunks with checksums", .chunk = {4, kColumns}, .checksums = true}, true);
  expect_same({.name = "chunks that cut rows", .chunk = {4, 2}}, false);
  expect_same({.name = "compressed", .chunk = {4, kColumns}, .deflate = 6}, false);
  expect_same({"compressed, with checksums", H5T_STD_I32LE, {4, kColumns}, true, 6}, false);
}

TEST_F(Rows, OfALongFileAreReadInPieces) {
  std::vector<double> values(200'000);
  std::iota(values.begin(), values.end(), 0.0);
  H5Writer file(path_, "somebody-else", "1.0");
  file.column("/numbers", values, "1");
  file.publish();
  std::vector<float> read(values.size() - 3);
  H5Rows(path_, "/numbers", "").read(3, std::ssize(read), read.data());
  EXPECT_EQ(read, std::vector<float>(values.begin() + 3, values.end()));
}

TEST_F(Rows, ThatAreDamagedAreNotTakenForOthers) {
  H5RowsWriter file(path_, "somebody-else", "1.0");
  const std::vector<std::uint8_t> rows(100 * 1000, 42);
  file.append(file.declare("/numbers", RowsType::u8, {100, 1000}), 100, rows.data());
  file.publish();
  const H5Rows numbers(path_, "/numbers", "");
  ASSERT_TRUE(numbers.is_plain());
  std::vector<std::uint8_t> row(1000);
  const auto read = [&](std::int64_t first) { return [&, first] { numbers.read(first, 1, row.data()); }; };
  EXPECT_NO_THROW(read(99)());
  std::string bytes(std::filesystem::file_size(path_), '\0');
  std::ifstream(path_, std::ios::binary).read(bytes.data(), std::ssize(bytes));
  const std::size_t at = bytes.find(std::string(1000, '\52'));  // the first chunk
  std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(std::ssize(bytes.substr(0, at)) + 500)
      .put('x');
  EXPECT_THAT(read(0), ThrowsMessage<Error>(testing::AllOf(
                           HasSubstr("'/numbers': cannot be read: its checksum does not match"),
                           HasSubstr("make it again"))));
  EXPECT_NO_THROW(read(99)()) << "of another chunk";
  std::filesystem::resize_file(path_, 100);
  EXPECT_THAT(read(0), ThrowsMessage<Error>(HasSubstr("the file is shorter than when it was opened")));
}

TEST_F(Rows, ReportsWhatIsMissingAndWhatWouldBeRight) {
  write(std::vector<std::int32_t>{1});
  EXPECT_THAT([&] { H5Rows(path_, "/token", "store it"); },
              ThrowsMessage<Error>(HasSubstr("missing (there is '/tokens')")));
  try {
    H5Rows(path_, "/words", "store the values as '/words'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("store the values as '/words'"));
  }
}

}  // namespace
}  // namespace alpa
