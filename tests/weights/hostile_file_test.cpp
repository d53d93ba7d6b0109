#include <gmock/gmock.h>

#include <cstdint>
#include <fstream>

#include "libalpa/base/error.h"
#include "libalpa/weights/safetensors_file.h"
#include "tests/h5/temporary_folder.h"

// Files that are no safetensors files, or lie about themselves: each is refused with the one message that
// names the file and what was expected, before anything is made of its data.
namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string little_endian(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  return little_endian(header.size()) + header + std::string(data_bytes, 'x');
}

/// One entry, as it stands in a header.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + entry("a", dtype, shape, offsets) + "}";
}

struct FileRow {
  const char* name;
  std::string bytes;
  std::string message;
};

void PrintTo(const FileRow& row, std::ostream* out) { *out << row.name; }

class HostileFile : public ::testing::TestWithParam<FileRow> {};

TEST_P(HostileFile, IsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "bad.safetensors";
  std::ofstream(path, std::ios::binary) << GetParam().bytes;
  try {
    const SafetensorsReader file(path);
    FAIL() << "it has " << file.tensors().size() << " tensors";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("bad.safetensors'"), HasSubstr(GetParam().message)));
    EXPECT_FALSE(error.hint().empty());
    EXPECT_LT(std::string(error.what()).size(), 1000u) << "it repeats too much of the file";
  }
}

const std::string good = entry("a", "F32", "[2]", "[0,8]");

INSTANTIATE_TEST_SUITE_P(
    Table, HostileFile,
    ::testing::Values(
        // The frame.
        FileRow{"empty", "", "it has 0 bytes, expected 8 or more"},
        FileRow{"short_length", "\x10\0\0", "expected 8 or more"},
        FileRow{"length_of_all_bits", little_endian(~0ull) + "{}", "expected at most 100000000"},
        FileRow{"length_over_the_bound", little_endian(100000001) + "{}", "expected at most 100000000"},
        FileRow{"length_beyond_the_file", little_endian(50) + "{}",
                "would have 50 bytes, and the file has 10"},
        FileRow{"no_header", little_endian(0), "does not start with '{'"},
        FileRow{"git_lfs", "version https://git-lfs.github.com/spec/v1\n", "expected at most 100000000"},
        // The JSON.
        FileRow{"array", with_header("[]", 0), "does not start with '{'"},
        FileRow{"blank_before", with_header(" {}", 0), "does not start with '{'"},
        FileRow{"cut", with_header("{" + good, 8), "not JSON from byte"},
        FileRow{"more_after", with_header("{" + good + "}{}", 8), "not JSON from byte"},
        FileRow{"no_utf8", with_header("{\"\xff\":1}", 0), "not JSON from byte"},
        FileRow{"deep", with_header("{\"a\":" + std::string(1000000, '['), 0),
                "an array as 'a', expected an object"},
        FileRow{"deep_objects", with_header("{\"a\":{\"shape\":{\"b\":{", 0), "an object as 'shape'"},
        FileRow{"huge_number", with_header("{\"a\":{\"shape\":[1e999]}}", 0), "not JSON from byte"},
        // Names.
        FileRow{"twice", with_header("{" + good + "," + entry("a", "F32", "[2]", "[8,16]") + "}", 16),
                "'a' appears twice"},
        FileRow{"field_twice", with_header("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}", 0),
                "'dtype' appears twice"},
        FileRow{"metadata_twice", with_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0),
                "appears twice"},
        FileRow{"no_name", with_header("{" + entry("", "F32", "[2]", "[0,8]") + "}", 8),
                "expected 1 to 256 printable"},
        FileRow{"long_name", with_header("{" + entry(std::string(257, 'n'), "F32", "[2]", "[0,8]") + "}", 8),
                "nnn...' as a tensor's name, expected 1 to 256 printable"},
        FileRow{"name_with_escape", with_header("{" + entry("\\u001b[2J", "F32", "[2]", "[0,8]") + "}", 8),
                "'?[2J' as a tensor's name"},
        FileRow{"unknown_field", with_header("{\"a\":{\"stride\":[1]}}", 0),
                "'stride', expected dtype, shape and data_offsets"},
        FileRow{"number_as_metadata", with_header("{\"__metadata__\":{\"a\":1}}", 0),
                "a number as 'a', expected a text"},
        FileRow{"text_as_tensor", with_header("{\"a\":\"b\"}", 0), "a text as 'a', expected an object"},
        // Type and shape.
        FileRow{"no_type", with_header("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
                "dtype is missing"},
        FileRow{"no_offsets", with_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8),
                "data_offsets is missing"},
        FileRow{"unknown_type", with_header(one("F31", "[2]", "[0,8]"), 8),
                "tensor 'a': the type 'F31' is not known"},
        FileRow{"number_as_type", with_header("{\"a\":{\"dtype\":4}}", 0),
                "a number as 'dtype', expected a text"},
        FileRow{"negative_extent", with_header(one("F32", "[-2]", "[0,8]"), 8),
                "a negative number as 'shape'"},
        FileRow{"fraction", with_header(one("F32", "[2.0]", "[0,8]"), 8), "a fraction as 'shape'"},
        FileRow{"nested_shape", with_header(one("F32", "[[2]]", "[0,8]"), 8), "an array as 'shape'"},
        FileRow{"nine_dimensions", with_header(one("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8),
                "expected at most 8"},
        FileRow{"extent_of_64_bits", with_header(one("F32", "[18446744073709551615]", "[0,8]"), 8),
                "which is too large"},
        FileRow{"product_that_wraps", with_header(one("F32", "[4294967296,4294967296,2]", "[0,8]"), 8),
                "4294967296x4294967296x2 is too large"},
        FileRow{"product_that_wraps_to_0", with_header(one("U8", "[4611686018427387904,4,0]", "[0,0]"), 0),
                "is too large"},
        // Places.
        FileRow{"one_offset", with_header(one("F32", "[2]", "[8]"), 8),
                "1 data_offsets, expected [begin, end]"},
        FileRow{"three_offsets", with_header(one("F32", "[2]", "[0,8,9]"), 8), "expected [begin, end]"},
        FileRow{"backwards", with_header(one("F32", "[2]", "[8,0]"), 8),
                "data_offsets [8, 0], expected 8 bytes"},
        FileRow{"too_short_for_its_shape", with_header(one("F32", "[2]", "[0,4]"), 4),
                "data_offsets [0, 4], expected 8 bytes for 2 of F32"},
        FileRow{"beyond_the_file", with_header("{" + good + "}", 4), "4 bytes follow the header, expected 8"},
        FileRow{"trailing_bytes", with_header("{" + good + "}", 9), "9 bytes follow the header, expected 8"},
        FileRow{"gap", with_header("{" + good + "," + entry("b", "F32", "[1]", "[12,16]") + "}", 16),
                "tensor 'b' begins at byte 12 of the data, expected 8"},
        FileRow{"gap_before_the_first", with_header(one("F32", "[2]", "[4,12]"), 12), "begins at byte 4"},
        FileRow{"overlap", with_header("{" + good + "," + entry("b", "F32", "[1]", "[4,8]") + "}", 8),
                "tensor 'b' begins at byte 4 of the data, expected 8"},
        FileRow{"same_place", with_header("{" + good + "," + entry("b", "F32", "[2]", "[0,8]") + "}", 8),
                "tensor 'b' begins at byte 0 of the data, expected 8"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(SafetensorsFile, IsReadWhereItIsNeitherDamagedNorPlain) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "good.safetensors";
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "I64", "[]", "[4,12]") +
                             "," + entry("empty", "F16", "[3,0]", "[4,4]") + "," +
                             entry("a", "BF16", "[1,2]", "[0,4]") + "}   ";
  std::ofstream(path, std::ios::binary) << little_endian(header.size()) << header << "0123456789ab";
  SafetensorsReader file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors().at("empty").shape, (Shape{3, 0}));
  std::string bytes(3, '\0');
  file.read(file.tensors().at("b"), 2, 3, bytes.data());
  EXPECT_EQ(bytes, "678");
}

TEST(SafetensorsFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "written.safetensors";
  {
    SafetensorsWriter writer(path, {{"wide", "F32", {2, 1}}, {"narrow", "BF16", {3}}});
    writer.write(writer.tensors()[1], "ABCDEF");
    writer.write(writer.tensors()[0], "01234567");
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.publish();
  }
  SafetensorsReader file(path);
  std::string bytes(6, '\0');
  file.read(file.tensors().at("narrow"), 0, 6, bytes.data());
  EXPECT_EQ(bytes, "ABCDEF");
  EXPECT_EQ(file.tensors().at("wide").shape, (Shape{2, 1}));
}

TEST(SafetensorsFile, SaysThatItsLayoutsArePyTorchs) {
  std::vector<StoredTensor> tensors{{"a", "F32", {2}}};
  EXPECT_EQ(safetensors_header(tensors), "{\"__metadata__\":{\"format\":\"pt\"}," + good + "}   ");
}

TEST(SafetensorsFile, IsNoFolderAndNoMissingFile) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { SafetensorsReader{folder.path()}; },
              ::testing::ThrowsMessage<Error>(HasSubstr("it is a folder")));
  EXPECT_THAT([&] { SafetensorsReader{folder.path() / "none"}; },
              ::testing::ThrowsMessage<Error>(HasSubstr("No such file")));
}

}  // namespace
}  // namespace alpa
