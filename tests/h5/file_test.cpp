#include "libalpa/h5/file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <numeric>

#include "libalpa/base/error.h"
#include "tests/h5/damage.h"
#include "tests/h5/limits.h"
#include "tests/h5/temporary_folder.h"

// HDF5 1.10.8 forgets the buffer of metadata whose checksum is wrong; AddressSanitizer asks for this by name.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

const std::vector<double> seconds{1.5e-6, 2.25e-6, 3e-6, 4e-6, 5e-6, 6e-6};
const std::vector<std::int64_t> bytes{1024, 1 << 20, std::int64_t{1} << 40};
const std::vector<std::int32_t> ranks{-1, 0, 2147483647};
const std::vector<std::string> names{"matmul", "", "softmax_cross_entropy", "größe"};

class ColumnFile : public ::testing::Test {
 protected:
  void write(const std::filesystem::path& path, const std::string& command = "alpa-profile gpt.toml") {
    H5Writer file(path, "alpa-profile", "1.2");
    file.column("/links/bytes", bytes, "byte");
    file.scale("/links/bytes");
    file.array("/links/seconds", seconds, {2, 3}, "s");
    file.attach_scale("/links/seconds", 1, "/links/bytes");
    file.column("/ranks", ranks, "1");
    file.column("/ops/name", names);
    file.enum_column("/ops/kind", std::vector<std::int32_t>{1, 0, 1}, {"forward", "backward"});
    file.column("/ops/none", std::vector<double>{}, "s");
    file.column("/ops/no_name", std::vector<std::string>{});
    file.text("/model", "name = \"gpt\"\n[training]\n");
    file.group("/stages/9");
    file.group("/stages/10");
    file.attribute("/", "model", "gpt-1.3b");
    file.attribute("/stages/10", "layers", 24);
    file.attribute("/stages/10", "fraction", 0.1);
    file.provenance(provenance_here(command, "alpa-profile 0.1.0", ""));
    file.publish();
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "profile.h5";
};

TEST_F(ColumnFile, GivesBackWhatWasWritten) {
  write(path_);
  const H5Reader file(path_, "alpa-profile", "1.0");
  EXPECT_EQ(file.format_version(), "1.2");
  EXPECT_EQ(file.int64s("/links/bytes"), bytes);
  EXPECT_EQ(file.doubles("/links/seconds", {2, 3}), seconds);
  EXPECT_EQ(file.extent("/links/seconds"), (Shape{2, 3}));
  EXPECT_THAT(file.int64s("/ranks", {-1}), ElementsAre(-1, 0, 2147483647));
  EXPECT_EQ(file.strings("/ops/name", {4}), names);
  EXPECT_THAT(file.enum_names("/ops/kind"), ElementsAre("backward", "forward", "backward"));
  EXPECT_THAT(file.doubles("/ops/none", {0}), IsEmpty());
  EXPECT_THAT(file.strings("/ops/no_name"), IsEmpty());
  EXPECT_EQ(file.text("/model"), "name = \"gpt\"\n[training]\n");
  EXPECT_EQ(file.text_attribute("/", "model"), "gpt-1.3b");
  EXPECT_EQ(file.int64_attribute("/stages/10", "layers"), 24);
  EXPECT_EQ(file.double_attribute("/stages/10", "fraction"), 0.1);
  EXPECT_EQ(file.text_attribute("/links/seconds", "units"), "s");
  EXPECT_EQ(file.text_attribute("/provenance", "command"), "alpa-profile gpt.toml");
  EXPECT_EQ(file.text_attribute("/provenance", "job_id"), "");
  file.verify();
}

TEST_F(ColumnFile, KeepsColumnsOfManyChunks) {
  std::vector<double> long_column(1'500'000);
  std::iota(long_column.begin(), long_column.end(), 0.0);
  H5Writer file(path_, "alpa-profile", "1.0");
  file.column("/values", long_column, "1");
  file.publish();
  const H5Reader reader(path_, "alpa-profile", "1.0");
  EXPECT_EQ(reader.doubles("/values"), long_column);
}

TEST_F(ColumnFile, ListsTheChildrenOfAGroupNumbersByValue) {
  write(path_);
  const H5Reader file(path_, "alpa-profile", "1.0");
  EXPECT_THAT(file.children("/"), ElementsAre("links", "model", "ops", "provenance", "ranks", "stages"));
  EXPECT_THAT(file.children("/stages"), ElementsAre("9", "10"));
  EXPECT_TRUE(file.has("/ops/name"));
  EXPECT_FALSE(file.has("/ops/nam"));
}

TEST_F(ColumnFile, IsReadByTheToolsOfHdf5) {
  write(path_);
  const std::string name = path_.string();
  EXPECT_THAT(run_command("h5dump -d /ops/kind " + name).output,
              HasSubstr("(0): backward, forward, backward"));
  EXPECT_THAT(run_command("h5dump -d /ops/name " + name).output,
              HasSubstr("\"matmul\", \"\", \"softmax_cross_entropy\""));
  EXPECT_THAT(run_command("h5dump -a /links/seconds/units " + name).output, HasSubstr("(0): \"s\""));
  EXPECT_THAT(run_command("h5ls -r " + name).output, HasSubstr("/links/seconds           Dataset {2, 3}"));
  EXPECT_THAT(run_command("h5dump " + name).status, 0);
}

TEST_F(ColumnFile, HasDimensionScalesButNoCompoundTypes) {
  write(path_);
  EXPECT_THAT(run_command("h5dump -H " + path_.string()).output, Not(HasSubstr("H5T_COMPOUND")));
  EXPECT_THAT(run_command("h5dump -a /links/bytes/CLASS " + path_.string()).output,
              HasSubstr("DIMENSION_SCALE"));
  EXPECT_THAT(run_command("h5dump -a /links/seconds/DIMENSION_LIST " + path_.string()).output,
              HasSubstr("(0): (), (DATASET"));
}

TEST_F(ColumnFile, IsTheSameByteForByteOutsideProvenance) {
  const auto twin = folder_.path() / "twin.h5", other = folder_.path() / "other.h5";
  write(path_);
  write(twin);
  write(other, "alpa-profile gpt.toml --out other.h5");
  EXPECT_EQ(run_command("h5diff --exclude-path /provenance " + path_.string() + " " + other.string()).status,
            0);
  EXPECT_EQ(run_command("h5diff " + path_.string() + " " + other.string()).status, 1);
  // The clock may have moved on by a second between the two.
  std::string first = bytes_of_file(path_), second = bytes_of_file(twin);
  const std::size_t provenance = first.find("command");
  EXPECT_GT(provenance, first.size() - 1000) << "written last";
  EXPECT_EQ(first.substr(48, provenance - 48), second.substr(48, provenance - 48)) << "after the superblock";
}

TEST_F(ColumnFile, UnpublishedLeavesNothing) {
  { H5Writer(path_, "alpa-profile", "1.0").column("/ranks", ranks, "1"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ColumnFile, OnAFullDiskLeavesNothing) {
  H5Writer file(path_, "alpa-profile", "1.0");
  file.column("/values", std::vector<double>(10'000), "1");
  const FileSizeLimit full(50'000);
  EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("free some space")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ColumnFile, CannotBeginInAFolderThatIsNotThere) {
  EXPECT_THAT([&] { H5Writer(folder_.path() / "no" / "plan.h5", "alpa-plan", "1.0"); },
              ThrowsMessage<Error>(HasSubstr("mkdir -p")));
}

TEST_F(ColumnFile, RefusesToWriteTwiceTheSameOrANulCharacter) {
  H5Writer file(path_, "alpa-profile", "1.0");
  file.column("/ranks", ranks, "1");
  EXPECT_THAT([&] { file.column("/ranks", ranks, "1"); },
              ThrowsMessage<Error>(HasSubstr("cannot add dataset '/ranks'")));
  EXPECT_THAT([&] { file.attribute("/", "format", "x"); },
              ThrowsMessage<Error>(HasSubstr("cannot add attribute")));
  EXPECT_THAT([&] { file.attribute("/none", "x", 1); },
              ThrowsMessage<Error>(HasSubstr("no group or dataset '/none'")));
  EXPECT_THAT([&] { file.text("/text", std::string_view("a\0b", 3)); },
              ThrowsMessage<Error>(HasSubstr("NUL")));
}

TEST_F(ColumnFile, SaysWhatWasExpectedWhereAReaderIsDisappointed) {
  write(path_);
  const H5Reader file(path_, "alpa-profile", "1.0");
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { file.doubles("/links/second"); }, "'/links/second': missing (there is '/links/seconds')"},
      {[&] { file.doubles("/links"); }, "'/links': expected floating-point numbers"},
      {[&] { file.doubles("/ranks"); }, "'/ranks': expected floating-point numbers"},
      {[&] { file.int64s("/links/seconds"); }, "'/links/seconds': expected integers"},
      {[&] { file.strings("/ranks"); }, "'/ranks': expected fixed-length strings"},
      {[&] { file.enum_names("/ranks"); }, "'/ranks': expected an enumeration"},
      {[&] { file.int64s("/ops/kind"); }, "'/ops/kind': expected integers"},
      {[&] { file.text("/ops/name"); }, "'/ops/name': expected one text, found 4"},
      {[&] { file.doubles("/links/seconds", {6}); }, "expected extent 6, found 2x3"},
      {[&] {
         file.doubles("/links/seconds", {2, 4});
       },
       "expected extent 2x4, found 2x3"},
      {[&] {
         file.doubles("/links/seconds", {-1, 4});
       },
       "expected extent anyx4, found 2x3"},
      {[&] { file.extent("/links"); }, "'/links': expected a dataset"},
      {[&] { file.children("/ranks"); }, "'/ranks': expected a group"},
      {[&] { file.children("/rank"); }, "'/rank': missing (there is '/ranks')"},
      {[&] { file.text_attribute("/", "modle"); }, "'/': attribute 'modle' is missing"},
      {[&] { file.int64_attribute("/", "model"); }, "'/': attribute 'model' is not an integer"},
      {[&] { file.double_attribute("/stages/10", "layers"); },
       "attribute 'layers' is not a floating-point number"},
      {[&] { file.text_attribute("/stages/10", "layers"); }, "attribute 'layers' is not a string"},
  };
  for (const auto& [read, text] : cases) {
    EXPECT_THAT(read, ThrowsMessage<Error>(
                          AllOf(HasSubstr(path_.string()), HasSubstr(text), HasSubstr("\n  try: "))));
    EXPECT_THAT(read, Throws<Error>(Property(&Error::kind, ErrorKind::input)));
  }
}

TEST_F(ColumnFile, IsRefusedWhereItsFormatOrVersionDoesNotFit) {
  write(path_);
  const auto open = [&](const char* format, const char* version) {
    return [=, this] { H5Reader(path_, format, version); };
  };
  EXPECT_THAT(open("alpa-plan", "1.0"),
              ThrowsMessage<Error>(HasSubstr("expected an 'alpa-plan' file, found an 'alpa-profile' file")));
  EXPECT_THAT(open("alpa-profile", "0.9"),
              ThrowsMessage<Error>(
                  HasSubstr("format alpa-profile 1.2 is newer than 0.9, the newest this program reads")));
  EXPECT_NO_THROW(open("alpa-profile", "2.0")());
}

// What a user of the file gets to see.
std::string everything(const std::filesystem::path& path) {
  const H5Reader file(path, "alpa-profile", "1.0");
  std::string all = file.text("/model") + file.text_attribute("/links/seconds", "units");
  for (const double v : file.doubles("/links/seconds")) all += std::to_string(v) + ' ';
  for (const std::int64_t v : file.int64s("/links/bytes")) all += std::to_string(v) + ' ';
  for (const std::string& v : file.strings("/ops/name")) all += v + ' ';
  for (const std::string& v : file.enum_names("/ops/kind")) all += v + ' ';
  for (const double v : file.doubles("/values")) all += std::to_string(v) + ' ';
  return all + std::to_string(file.int64_attribute("/stages/10", "layers"));
}

class DamagedColumnFile : public ColumnFile {
 protected:
  void SetUp() override {
    H5Writer file(path_, "alpa-profile", "1.0");
    file.array("/links/seconds", seconds, {2, 3}, "s");
    file.column("/links/bytes", bytes, "byte");
    file.column("/ops/name", names);
    file.enum_column("/ops/kind", std::vector<std::int32_t>{1, 0, 1}, {"forward", "backward"});
    file.column("/values", std::vector<double>(600, 1.25), "1");
    file.text("/model", "name = \"gpt\"\n");
    for (int stage = 0; stage < 11; ++stage) file.group("/stages/" + std::to_string(stage));
    file.attribute("/stages/10", "layers", 24);
    file.publish();
  }
};

TEST_F(DamagedColumnFile, IsRefusedOrReadsAsBeforeWhicheverBitIsFlipped) {
  const std::string before = everything(path_);
  int refused = 0, unharmed = 0;
  for (std::int64_t byte = 0; byte < static_cast<std::int64_t>(std::filesystem::file_size(path_));
       byte += 7) {
    const FlippedBit flipped(path_, byte, static_cast<int>(byte % 8));
    try {
      ASSERT_EQ(everything(path_), before) << "byte " << byte;
      ++unharmed;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::input);
      ASSERT_THAT(error.what(), HasSubstr(path_.string()));
      ++refused;
    }
  }
  EXPECT_GT(refused, 9 * unharmed) << "few bytes of a file may be changed unnoticed";
}

TEST_F(DamagedColumnFile, IsRefusedWhereverItIsCutOff) {
  for (std::uintmax_t size = std::filesystem::file_size(path_) - 1; size >= 97; size -= 97) {
    std::filesystem::resize_file(path_, size);
    ASSERT_THAT([&] { everything(path_); }, ThrowsMessage<Error>(HasSubstr("truncated or damaged"))) << size;
  }
}

}  // namespace
}  // namespace alpa
