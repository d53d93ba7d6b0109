#pragma once
#include <filesystem>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/h5/file_lock.h"

namespace alpa {

/// Keeps other runs out of a folder while it lives, by a lock on RUN_DIR/lock, which holds on all nodes that
/// see the folder; the system lets go of it when the process is gone, however it ended. For one rank, before
/// anything of the folder is read.
class RunFolderLock {
 public:
  /// Makes the folder where it is missing. `holder` is what others read, e.g. "process 4711 on node7". Throws
  /// Error(input) where another process holds the lock, the folder cannot be made or written to, or locking
  /// fails. On a file system without locks it keeps nobody out, and warns.
  RunFolderLock(const std::filesystem::path& run_dir, const std::string& holder, Log& log,
                const TakeLock& take_lock = flock);

  /// Removes the file, and a folder that it made and nobody wrote to.
  ~RunFolderLock();
  RunFolderLock(const RunFolderLock&) = delete;
  RunFolderLock& operator=(const RunFolderLock&) = delete;

  /// Whether the locked file is still the one that others find: not where the folder was removed meanwhile.
  bool is_in_place() const;

 private:
  /// Whether it is locked; false: it was another's, who has removed it just now.
  bool take(const TakeLock& take_lock, Log& log);
  std::string holder() const;  ///< as the file says

  std::filesystem::path run_dir_, file_;
  bool made_folder_ = false;
  int descriptor_ = -1;
};

}  // namespace alpa
