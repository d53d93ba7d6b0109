#include "libalpa/h5/resumable_file.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "libalpa/base/error.h"
#include "tests/h5/damage.h"
#include "tests/h5/limits.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Resumable : public testing::Test {
 protected:
  /// What is logged, or thrown, where locking fails so.
  std::string logged_where_locking_fails(int error_number) {
    testing::internal::CaptureStderr();
    std::string thrown;
    try {
      ResumableFile(out_, "part", log_, [error_number](int, int) {
        errno = error_number;
        return -1;
      });
    } catch (const Error& error) {
      thrown = error.what();
    }
    return testing::internal::GetCapturedStderr() + thrown;
  }

  TemporaryFolder folder_;
  const std::filesystem::path out_ = folder_.path() / "out.h5",
                              path_ = folder_.path() / "out.h5.partial-part";
  Log log_{"test", LogLevel::info};
};

TEST_F(Resumable, KeepsItsBytesForTheNext) {
  ResumableFile(out_, "part", log_).append("one, two");
  ResumableFile file(out_, "part", log_);
  EXPECT_EQ(file.path(), path_);
  EXPECT_EQ(file.bytes(), 8);
  file.cut(5);
  file.append("three");
  file.sync();
  EXPECT_EQ(file.bytes(), 10);
  EXPECT_EQ(bytes_of_file(path_), "one, three");
  file.remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Resumable, IsForOneProcessAtATime) {
  {
    const ResumableFile first(out_, "part", log_);
    EXPECT_THAT([&] { ResumableFile(out_, "part", log_); },
                ThrowsMessage<Error>(AllOf(HasSubstr("another process is writing '" + out_.string() + "'"),
                                           HasSubstr("wait until that process has ended"))));
    const ResumableFile other_part(out_, "rest", log_);
  }
  EXPECT_NO_THROW(ResumableFile(out_, "part", log_));
}

TEST_F(Resumable, ThatWasRemovedBeforeItWasLockedIsMadeAnew) {
  int locked = 0;
  const ResumableFile file(out_, "part", log_, [&](int, int) {
    if (++locked == 1) std::filesystem::remove(path_);
    return 0;
  });
  EXPECT_EQ(locked, 2);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Resumable, WarnsOnAFileSystemWithoutLocksAndPassesOverNothingElse) {
  EXPECT_THAT(logged_where_locking_fails(ENOLCK), HasSubstr("is on a file system without locks"));
  EXPECT_THAT(logged_where_locking_fails(EIO), HasSubstr("cannot lock '" + path_.string()));
}

TEST_F(Resumable, OnAFullDiskSaysWhatToDo) {
  ResumableFile file(out_, "part", log_);
  const FileSizeLimit full(1000);
  EXPECT_THAT([&] { file.append(std::string(1001, 'x')); },
              ThrowsMessage<Error>(HasSubstr("free some space")));
}

}  // namespace
}  // namespace alpa
