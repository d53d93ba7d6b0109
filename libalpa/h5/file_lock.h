#pragma once
#include <sys/file.h>

#include <filesystem>
#include <functional>

namespace alpa {

/// As flock(); what it returns and leaves in errno.
using TakeLock = std::function<int(int descriptor, int operation)>;

/// Locks an open file for this process alone, without waiting, on all nodes that see it; the system lets go
/// of it when the file is closed, however the process ended. The result is 0, or the number of the error:
/// EWOULDBLOCK where another process holds it.
int lock_file(int descriptor, const TakeLock& take_lock = flock);

/// Whether such an error says that the file system knows no locks.
bool has_no_locks(int error_number);

/// Whether an open file is still the one that others find under its name.
bool is_in_place(int descriptor, const std::filesystem::path& path);

}  // namespace alpa
