#include "libalpa/h5/file.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
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

TEST_F(ColumnFile, ListsTheChildrenOfAGroupNumbersByValue) {
  write(path_);
  const H5Reader file(path_, "alpa-profile", "1.0");
  EXPECT_THAT(file.children("/"), ElementsAre("links", "model", "ops", "provenance", "ranks", "stages"));
  EXPECT_THAT(file.children("/stages"), ElementsAre("9", "10"));
  EXPECT_TRUE(file.has("/ops/name"));
  EXPECT_FALSE(file.has("/ops/nam"));
}

}  // namespace
}  // namespace alpa
