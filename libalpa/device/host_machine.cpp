#include "libalpa/device/host_machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using std::filesystem::path;

/// Of the line "key number ..." of a file.
std::optional<std::int64_t> keyed_number(const path& name, const std::string& wanted) {
  std::ifstream file(name);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t number = 0;
    if (words >> key >> number && key == wanted) return number;
  }
  return std::nullopt;
}

/// Nothing where the file is missing or says "max".
std::optional<std::int64_t> number_in(const path& name) {
  std::ifstream file(name);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// Where the kernel keeps a version of control groups, and how it calls things there.
struct ControlGroups {
  const char *folder, *limit, *usage, *reclaimable;
};
constexpr ControlGroups kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr ControlGroups kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

/// The least that the group at `place` and those around it leave.
std::int64_t left_by(const ControlGroups& names, const path& root, path place) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  for (;; place = place.parent_path()) {
    const path folder = root / names.folder / place;
    const auto limit = number_in(folder / names.limit), usage = number_in(folder / names.usage);
    // Files that were read count as used until the memory is wanted.
    const std::int64_t reclaimable = keyed_number(folder / "memory.stat", names.reclaimable).value_or(0);
    if (limit && usage) left = std::min(left, std::max<std::int64_t>(*limit - *usage + reclaimable, 0));
    if (place.empty()) return left;
  }
}

std::int64_t left_by_control_groups(const path& root) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:/place
    const std::size_t first = line.find(':'), second = line.find(":/", first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      place = line.substr(second + 2);
    if (controllers == "memory") left = std::min(left, left_by(kVersion1, root, place));
    if (controllers.empty()) left = std::min(left, left_by(kVersion2, root, place));
  }
  return left;
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown processor";
}

std::int64_t available_host_bytes(const std::filesystem::path& root) {
  const std::optional<std::int64_t> available = keyed_number(root / "proc/meminfo", "MemAvailable:");
  if (!available)
    throw Error(ErrorKind::run_time, "/proc/meminfo has no MemAvailable",
                "mount /proc, or use Linux 3.14 or later");
  return std::min(*available * 1024, left_by_control_groups(root));
}

std::int64_t process_bytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];  // pages in all, pages in memory, ...
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  const char* const end = text + std::max<ssize_t>(length, 0);
  const char* const at = std::find<const char*>(text, end, ' ');
  std::int64_t pages = 0;
  if (at != end) std::from_chars(at + 1, end, pages);
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace alpa
