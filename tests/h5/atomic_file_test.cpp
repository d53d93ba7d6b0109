#include "libalpa/h5/atomic_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libalpa/base/error.h"
#include "tests/h5/damage.h"
#include "tests/h5/limits.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class PublishText : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "trace.json";
};

TEST_F(PublishText, ReplacesTheOldFileByTheWholeNewOne) {
  publish_text(path_, "old, and longer than the new one");
  publish_text(path_, "new");
  EXPECT_EQ(bytes_of_file(path_), "new");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("trace.json"));
}

TEST_F(PublishText, LeavesThePermissionsToTheUmask) {
  for (const mode_t mask : {0077, 0027, 0002}) {
    const Umask umask(mask);
    publish_text(path_, "text");
    EXPECT_EQ(static_cast<mode_t>(std::filesystem::status(path_).permissions()), 0666 & ~mask);
  }
}

TEST_F(PublishText, ReplacesALinkAndLeavesItsTargetAlone) {
  const auto precious = folder_.path() / "precious";
  publish_text(precious, "precious");
  std::filesystem::create_symlink(precious, path_);
  publish_text(path_, "new");
  EXPECT_EQ(bytes_of_file(precious), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(path_));
}

TEST_F(PublishText, NamesWhatToDoAboutAFolderThatIsNotThere) {
  const auto path = folder_.path() / "runs" / "trace.json";
  EXPECT_THAT([&] { publish_text(path, "text"); },
              ThrowsMessage<Error>(AllOf(HasSubstr(path.string()), HasSubstr("No such file or directory"),
                                         HasSubstr("mkdir -p '" + path.parent_path().string()))));
  EXPECT_THAT([&] { publish_text(path, "text"); }, Throws<Error>(Property(&Error::kind, ErrorKind::input)));
}

TEST_F(PublishText, RefusesAFolderAsTarget) {
  EXPECT_THAT([&] { publish_text(folder_.path(), "text"); },
              ThrowsMessage<Error>(HasSubstr("give the name of a file")));
  EXPECT_THAT([&] { publish_text(folder_.path() / "", "text"); },
              ThrowsMessage<Error>(HasSubstr("give the name of a file")));
}

TEST_F(PublishText, RefusesAFolderWithoutPermission) {
  std::filesystem::permissions(folder_.path(),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // Root may write everywhere, so root tries as nobody.
  constexpr uid_t nobody = 65534;
  const uid_t user = geteuid();
  ASSERT_EQ(user == 0 ? seteuid(nobody) : 0, 0);
  EXPECT_THAT([&] { publish_text(path_, "text"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("Permission denied"), HasSubstr("may write"))));
  ASSERT_EQ(seteuid(user), 0);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

TEST_F(PublishText, OnAFullDiskKeepsTheOldFileAndLeavesNothingElse) {
  publish_text(path_, "old");
  {
    const FileSizeLimit full(1000);
    EXPECT_THAT([&] { publish_text(path_, std::string(1001, 'x')); },
                Throws<Error>(AllOf(Property(&Error::kind, ErrorKind::run_time),
                                    Property(&Error::what, HasSubstr("free some space")))));
  }
  EXPECT_EQ(bytes_of_file(path_), "old");
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("trace.json"));
}

TEST_F(PublishText, KilledBeforeItIsPublishedAFileKeepsItsOldContent) {
  publish_text(path_, "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path_);
    file.write_at(0, "half of the new te");
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(bytes_of_file(path_), "old");
}

TEST_F(PublishText, NoticesThatSomebodyReplacedTheTemporaryFile) {
  AtomicFile file(path_);
  std::filesystem::remove(file.temporary_path());
  publish_text(file.temporary_path(), "somebody else's");
  EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("was replaced by another file")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PublishText, RefusesToReplaceWhatIsNoFile) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT([&] { publish_text(path_, "text"); },
              ThrowsMessage<Error>(HasSubstr("it is not a regular file")));
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(PublishText, RemovesAFileThatIsNotPublished) {
  {
    AtomicFile file(path_);
    file.write_at(0, "text");
    EXPECT_EQ(names_in(folder_.path()).size(), 1u);
  }
  EXPECT_THAT(names_in(folder_.path()), IsEmpty());
}

TEST_F(PublishText, IsFollowedByAnEndOfWhatWasLeftByTheKilled) {
  publish_text(path_, "text");
  const std::vector<std::string> others{"trace.json.partial-0123456", "trace.json.partial-012345678",
                                        "trace.json.partial-tokenize", "trace.json2.partial-01234567"};
  for (const std::string& name : others) publish_text(folder_.path() / name, "other");
  publish_text(folder_.path() / "trace.json.partial-0123cdef", "left");
  Log log("test", LogLevel::info);
  testing::internal::CaptureStderr();
  remove_leftovers(path_, log);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("removed '" + path_.string() + ".partial-0123cdef', which was never completed"));
  std::vector<std::string> left = others;
  left.push_back("trace.json");
  EXPECT_THAT(names_in(folder_.path()), ::testing::UnorderedElementsAreArray(left));
}

TEST(FreeBytes, AreThoseOfTheNearestFolderThatIsThere) {
  const TemporaryFolder folder;
  EXPECT_GT(free_bytes(folder.path() / "not" / "yet").value(), 0);
  EXPECT_THAT(room_text(folder.path() / "plan.h5"), HasSubstr("B is free where '"));
}

TEST(FreeBytes, AreNotKnownWhereTheSystemDoesNotSay) {
  EXPECT_EQ(free_bytes(""), std::nullopt);  // which names no place
  EXPECT_EQ(room_text(""), "how much is free where '' would be is not known");
}

}  // namespace
}  // namespace alpa
