#include "libalpa/h5/file_lock.h"

#include <sys/stat.h>

#include <cerrno>

namespace alpa {

int lock_file(int descriptor, const TakeLock& take_lock) {
  int error_number = 0;
  do error_number = take_lock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  while (error_number == EINTR);
  return error_number;
}

bool has_no_locks(int error_number) {
  return error_number == ENOSYS || error_number == EOPNOTSUPP || error_number == ENOLCK;
}

bool is_in_place(int descriptor, const std::filesystem::path& path) {
  struct stat ours {
  }, named{};
  return fstat(descriptor, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

}  // namespace alpa
