#include "libalpa/h5/atomic_file.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(PublishText, ReplacesTheOldFileByTheWholeNewOne) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  publish_text(path, "old, and longer than the new one");
  publish_text(path, "new");
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(run_command("ls " + folder.path().string()).output, "trace.json\n");
}

}  // namespace
}  // namespace alpa
