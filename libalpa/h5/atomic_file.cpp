#include "libalpa/h5/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/descriptor.h"

namespace alpa {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

constexpr const char* temporary_mark = ".partial-";  // then eight digits

std::uint32_t random_word() {
  std::uint32_t word = 0;
  if (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word))
    word = static_cast<std::uint32_t>(getpid());
  return word;
}

/// Brings the names in a folder to disk.
std::error_code sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {errno, std::generic_category()};
  const int result = fsync(descriptor), error_number = errno;
  close(descriptor);
  // Some file systems have nothing to synchronise for a folder and say EINVAL.
  if (result == 0 || error_number == EINVAL) return {};
  return {error_number, std::generic_category()};
}

}  // namespace

Error file_error(ErrorKind kind, const std::string& doing, const std::filesystem::path& path,
                 int error_number) {
  std::string hint;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      hint = "free some space or quota, or write to another file system";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      hint = "choose a folder that you may write to";
      break;
    case ENOENT:
    case ENOTDIR:
      hint = fmt::format("mkdir -p '{}'", folder_of(path).string());
      break;
    case EISDIR:
      hint = "give the name of a file, not of a folder";
      break;
    default:
      break;
  }
  return Error(kind, fmt::format("cannot {} '{}': {}", doing, path.string(), std::strerror(error_number)),
               hint);
}

void write_at(int descriptor, std::int64_t offset, std::string_view bytes,
              const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw file_error(ErrorKind::run_time, "write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
}

void sync(int descriptor, const std::filesystem::path& path) {
  if (fsync(descriptor) != 0) throw file_error(ErrorKind::run_time, "bring to disk", path, errno);
}

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  struct stat about {};
  const bool exists = lstat(target_.c_str(), &about) == 0;
  if (!target_.has_filename() || (exists && S_ISDIR(about.st_mode)))
    throw file_error(ErrorKind::input, "write", target_, EISDIR);
  // A link is replaced, whatever it leads to; a device or a pipe would be gone for its users.
  if (exists && !S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode))
    throw Error(ErrorKind::input,
                fmt::format("cannot write '{}': it is not a regular file", target_.string()),
                "give the name of a file");
  for (int attempt = 0; attempt < 16 && descriptor_ < 0; ++attempt) {
    temporary_ = target_;
    temporary_ += fmt::format("{}{:08x}", temporary_mark, random_word());
    // 0666: the umask decides, as for any file that a group shares.
    descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) throw file_error(ErrorKind::input, "write", target_, errno);
  }
  if (descriptor_ < 0) throw file_error(ErrorKind::run_time, "write", target_, EEXIST);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  unlink(temporary_.c_str());
  close(descriptor_);
}

void AtomicFile::resize(std::int64_t bytes) {
  int result = ftruncate(descriptor_, bytes);
  if (result == 0 && bytes > 0) do
      result = fallocate(descriptor_, 0, 0, bytes);
    while (result != 0 && errno == EINTR);
  if (result == 0) return;
  int error_number = errno;
  if (error_number == EOPNOTSUPP || error_number == ENOSYS) {
    struct statvfs space {};
    if (fstatvfs(descriptor_, &space) != 0) return;
    if (static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) >=
        static_cast<double>(bytes))
      return;
    error_number = ENOSPC;
  }
  const std::string size = bytes_text(bytes);
  throw file_error(ErrorKind::run_time, fmt::format("find {} for", size), target_, error_number);
}

void AtomicFile::write_at(std::int64_t offset, std::string_view bytes) {
  alpa::write_at(descriptor_, offset, bytes, target_);
}

void AtomicFile::publish() {
  struct stat ours {
  }, named{};
  if (fstat(descriptor_, &ours) != 0 || lstat(temporary_.c_str(), &named) != 0)
    throw file_error(ErrorKind::run_time, "publish", target_, errno);
  if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino)
    throw Error(ErrorKind::run_time,
                fmt::format("'{}' was replaced by another file while it was written", temporary_.string()),
                "write to a folder that only trusted users may change");
  sync(descriptor_, target_);
  if (rename(temporary_.c_str(), target_.c_str()) != 0)
    throw file_error(ErrorKind::run_time, "rename to", target_, errno);
  close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = folder_of(target_);
  if (const std::error_code error = sync_folder(folder))
    throw file_error(ErrorKind::run_time, "bring to disk folder", folder, error.value());
}

void remove_leftovers(const std::filesystem::path& target, Log& log) {
  const std::string begin = target.filename().string() + temporary_mark;
  const auto is_leftover = [&](const std::string& name) {
    return name.starts_with(begin) && name.size() == begin.size() + 8 &&
           name.find_first_not_of("0123456789abcdef", begin.size()) == std::string::npos;
  };
  std::vector<std::filesystem::path> leftovers;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder_of(target), error), end; !error && i != end;
       i.increment(error))
    if (is_leftover(i->path().filename().string())) leftovers.push_back(i->path());
  for (const std::filesystem::path& leftover : leftovers)
    if (std::filesystem::remove(leftover, error))
      log.info(fmt::format("removed '{}', which was never completed", leftover.string()));
}

std::error_code make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(folder, error);
  if (std::filesystem::is_directory(there)) return {};
  if (std::filesystem::exists(there)) return std::make_error_code(std::errc::not_a_directory);
  const std::filesystem::path above = folder_of(folder);
  if (above != folder && (error = make_folder(above))) return error;
  if (!std::filesystem::create_directory(folder, error)) return error;  // another process may have made it
  return sync_folder(above);
}

std::optional<double> free_bytes(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(place, error) && place.has_relative_path()) place = place.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(place, error);
  return error ? std::nullopt : std::optional(static_cast<double>(space.available));
}

std::string room_text(const std::filesystem::path& file) {
  const std::optional<double> bytes = free_bytes(file);
  return bytes ? fmt::format("{} is free where '{}' would be", bytes_text(*bytes), file.string())
               : fmt::format("how much is free where '{}' would be is not known", file.string());
}

void publish_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.resize(static_cast<std::int64_t>(text.size()));
  file.write_at(0, text);
  file.publish();
}

}  // namespace alpa
