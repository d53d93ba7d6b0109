#include "libalpa/trainer/run_folder_lock.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <fstream>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LockOfARunFolder : public ::testing::Test {
 protected:
  void lock() { const RunFolderLock held(run_, "process 2 on here", log_); }

  /// What is logged by a lock for which flock() fails so.
  std::string logged_where_locking_fails(int error_number) {
    testing::internal::CaptureStderr();
    try {
      const RunFolderLock held(run_, "process 3 on here", log_, [error_number](int, int) {
        errno = error_number;
        return -1;
      });
    } catch (const Error&) {
      testing::internal::GetCapturedStderr();
      throw;
    }
    return testing::internal::GetCapturedStderr();
  }

  TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "runs" / "run";
  Log log_{"alpa-train", LogLevel::info};
};

TEST_F(LockOfARunFolder, KeepsOthersOutAndSaysWhoHoldsIt) {
  {
    const RunFolderLock first(run_, "process 1 on node7, job 12", log_);
    EXPECT_TRUE(first.is_in_place());
    EXPECT_THAT([&] { lock(); },
                ThrowsMessage<Error>(AllOf(HasSubstr("another run trains into '" + run_.string()),
                                           HasSubstr("process 1 on node7, job 12"))));
  }
  EXPECT_NO_THROW(lock());
}

TEST_F(LockOfARunFolder, LeavesNothingWhereNothingWasWritten) {
  lock();
  EXPECT_FALSE(fs::exists(run_));
  fs::create_directories(run_);
  lock();
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(LockOfARunFolder, IsTakenAfterAHolderThatWasKilled) {
  fs::create_directories(run_);
  std::ofstream(run_ / "lock") << "process 1 on node7\n";
  EXPECT_NO_THROW(lock());
}

TEST_F(LockOfARunFolder, NoticesThatTheFolderWasRemoved) {
  const RunFolderLock first(run_, "process 1 on here", log_);
  fs::remove_all(run_);
  EXPECT_FALSE(first.is_in_place());
  const RunFolderLock second(run_, "process 2 on here", log_);
  EXPECT_TRUE(second.is_in_place());
  EXPECT_FALSE(first.is_in_place());
}

TEST_F(LockOfARunFolder, WarnsOnAFileSystemWithoutLocks) {
  fs::create_directories(run_);
  std::ofstream(run_ / "lock") << "process 1 on node7\n";
  for (const int error_number : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    std::ofstream(run_ / "lock") << "process 1 on node7\n";
    EXPECT_THAT(logged_where_locking_fails(error_number),
                AllOf(HasSubstr("is on a file system without locks"), HasSubstr("process 1 on node7")));
  }
}

TEST_F(LockOfARunFolder, DoesNotPassOverOtherFailures) {
  EXPECT_THAT([&] { logged_where_locking_fails(EIO); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot lock '"), HasSubstr("Input/output error"))));
  std::ofstream(folder_.path() / "file") << "in the way";
  EXPECT_THAT([&] { RunFolderLock(folder_.path() / "file" / "run", "", log_); },
              ThrowsMessage<Error>(HasSubstr("choose a --run-dir that you may write to")));
}

}  // namespace
}  // namespace alpa
