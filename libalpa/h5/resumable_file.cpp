#include "libalpa/h5/resumable_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/h5/descriptor.h"

namespace alpa {
namespace {

/// The file, open and locked; none where it was another's who has removed it just now.
Descriptor locked(const std::filesystem::path& path, const std::filesystem::path& target, Log& log,
                  const TakeLock& take_lock) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file < 0) throw file_error(ErrorKind::input, "write", path, errno);
  const int error_number = lock_file(file, take_lock);
  if (error_number == 0) return is_in_place(file, path) ? std::move(file) : Descriptor();
  if (has_no_locks(error_number)) {
    log.warning(
        fmt::format("'{}' is on a file system without locks ({}): nothing keeps another process from it",
                    path.string(), std::strerror(error_number)));
    return file;
  }
  if (error_number != EWOULDBLOCK) throw file_error(ErrorKind::input, "lock", path, error_number);
  throw Error(ErrorKind::input, fmt::format("another process is writing '{}'", target.string()),
              "another name, or wait until that process has ended");
}

}  // namespace

ResumableFile::ResumableFile(const std::filesystem::path& target, const std::string& part, Log& log,
                             const TakeLock& take_lock)
    : path_(target.string() + ".partial-" + part), file_(std::make_unique<Descriptor>()) {
  while (*file_ < 0) *file_ = locked(path_, target, log, take_lock);
  bytes_ = lseek(*file_, 0, SEEK_END);
}

ResumableFile::~ResumableFile() = default;

void ResumableFile::cut(std::int64_t bytes) {
  assert(bytes <= bytes_);
  if (ftruncate(*file_, bytes) != 0) throw file_error(ErrorKind::run_time, "shorten", path_, errno);
  bytes_ = bytes;
}

void ResumableFile::append(std::string_view bytes) {
  write_at(*file_, bytes_, bytes, path_);
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

void ResumableFile::sync() {
  if (fdatasync(*file_) != 0) throw file_error(ErrorKind::run_time, "bring to disk", path_, errno);
}

void ResumableFile::remove() { unlink(path_.c_str()); }

}  // namespace alpa
