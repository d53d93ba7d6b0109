#include "libalpa/trainer/run_folder_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

Error cannot_lock(const fs::path& path, int error_number) {
  std::error_code ignored;
  return Error(ErrorKind::input,
               fmt::format("cannot lock '{}': {}", path.string(), std::strerror(error_number)),
               fs::is_regular_file(path, ignored) ? "a folder for --run-dir: this is a file"
                                                  : "choose a --run-dir that you may write to");
}

}  // namespace

RunFolderLock::RunFolderLock(const fs::path& run_dir, const std::string& holder, Log& log,
                             const TakeLock& take_lock)
    : run_dir_(run_dir), file_(run_dir / "lock") {
  std::error_code error;
  made_folder_ = !fs::exists(run_dir, error);
  error = make_folder(run_dir);
  if (error) throw cannot_lock(run_dir, error.value());
  while (!take(take_lock, log)) continue;
  // What it says is for people; a full disk does not matter here.
  if (ftruncate(descriptor_, 0) == 0) {
    const std::string line = holder + "\n";
    [[maybe_unused]] const ssize_t written = pwrite(descriptor_, line.data(), line.size(), 0);
  }
}

bool RunFolderLock::take(const TakeLock& take_lock, Log& log) {
  // Not the folder itself: network file systems lock folders for their own node alone.
  descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw cannot_lock(file_, errno);
  const int error_number = lock_file(descriptor_, take_lock);
  if (error_number == 0 && is_in_place()) return true;
  const std::string other = holder();
  if (has_no_locks(error_number)) {
    log.warning(fmt::format(
        "'{}' is on a file system without locks ({}): nothing keeps another run out of it{}",
        run_dir_.string(), std::strerror(error_number),
        other.empty() ? "" : fmt::format("; make sure that {}, which trained into it, has ended", other)));
    return true;
  }
  close(std::exchange(descriptor_, -1));
  if (error_number == 0) return false;
  if (error_number != EWOULDBLOCK) throw cannot_lock(file_, error_number);
  throw Error(ErrorKind::input,
              fmt::format("another run trains into '{}'{}", run_dir_.string(),
                          other.empty() ? "" : fmt::format(": {}", other)),
              "another --run-dir, or wait until that run has ended");
}

RunFolderLock::~RunFolderLock() {
  if (descriptor_ < 0) return;
  if (is_in_place()) unlink(file_.c_str());
  close(descriptor_);
  if (made_folder_) rmdir(run_dir_.c_str());  // unless something is in it
}

bool RunFolderLock::is_in_place() const { return alpa::is_in_place(descriptor_, file_); }

std::string RunFolderLock::holder() const {
  std::array<char, 256> text{};
  const ssize_t count = pread(descriptor_, text.data(), text.size(), 0);
  const std::string_view line(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return std::string(line.substr(0, line.find('\n')));
}

}  // namespace alpa
