#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "libalpa/base/log.h"

namespace alpa {

/// A file on its way to its name. It is written beside its target under a temporary name
/// ("plan.h5.partial-1f3a09c2") and takes the target's name only when it is whole and on disk, so that
/// whoever looks sees the old file or the new one. Needs a POSIX file system, where rename is atomic.
class AtomicFile {
 public:
  /// Creates the temporary file, which must not exist and is no link that could be followed, with the
  /// permissions that the umask leaves. Throws Error(input) when the folder is missing or not writable.
  explicit AtomicFile(std::filesystem::path target);

  /// Removes the temporary file unless it was published.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& target() const { return target_; }
  const std::filesystem::path& temporary_path() const { return temporary_; }

  /// Makes the file `bytes` long and sets its disk blocks aside, so that a full disk is noticed before the
  /// writing starts; on file systems that cannot reserve, compares with the free space, if that is known.
  /// Throws Error(run_time) without room.
  void resize(std::int64_t bytes);

  /// Writes all of `bytes` at `offset`. Throws Error(run_time), e.g. when the disk is full.
  void write_at(std::int64_t offset, std::string_view bytes);

  /// Brings the bytes to disk, renames, and brings the new name to disk. Throws Error(run_time); the target
  /// is then as it was, unless the last of these steps failed.
  void publish();

 private:
  std::filesystem::path target_, temporary_;
  int descriptor_ = -1;
};

/// Removes the temporary files of `target` that processes have left which were killed, and says so. Only for
/// who knows that no other process is writing it.
void remove_leftovers(const std::filesystem::path& target, Log& log);

/// Makes a folder, and those above it, where they are missing, and brings their names to disk. What cannot be
/// made is the result, as std::filesystem reports it.
std::error_code make_folder(const std::filesystem::path& folder);

/// Free on the disk of a folder, in bytes, or of the nearest one around it that exists; nullopt where the
/// system does not say. A quota is not seen.
std::optional<double> free_bytes(const std::filesystem::path& folder);

/// In words, of a file that is to be written: "50.00 GiB is free where 'plan.h5' would be".
std::string room_text(const std::filesystem::path& file);

/// Writes a whole text file under `path`, atomically.
void publish_text(const std::filesystem::path& path, std::string_view text);

}  // namespace alpa
