#include "libalpa/device/host_machine.h"

#include <fstream>
#include <sstream>

#include "libalpa/base/error.h"

namespace alpa {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown processor";
}

std::int64_t available_host_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") return kibibytes * 1024;
  }
  throw Error(ErrorKind::run_time, "/proc/meminfo has no MemAvailable",
              "mount /proc, or use Linux 3.14 or later");
}

}  // namespace alpa
