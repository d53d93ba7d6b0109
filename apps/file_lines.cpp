#include "apps/file_lines.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "libalpa/base/unreadable_file.h"

namespace alpa {

std::vector<std::string> file_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw unreadable_file(path, std::strerror(errno));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  if (file.bad()) throw unreadable_file(path, std::strerror(errno));
  return lines;
}

}  // namespace alpa
