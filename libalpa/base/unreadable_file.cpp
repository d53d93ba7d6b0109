#include "libalpa/base/unreadable_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

namespace alpa {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 1000;  ///< of a folder that are looked at

}  // namespace

std::string file_meant(const fs::path& path) {
  std::vector<std::string> stems;
  std::vector<fs::path> files;
  const fs::path folder = path.parent_path();
  std::error_code error;
  for (fs::directory_iterator i(folder.empty() ? "." : folder, error), end;
       !error && i != end && files.size() < kMostNames; i.increment(error)) {
    const fs::path name = i->path().filename();
    if (path.has_extension() && name.extension() != path.extension()) continue;
    std::error_code ignored;
    if (!i->is_regular_file(ignored)) continue;
    files.push_back(folder / name);
    stems.push_back(name.stem());
  }
  std::sort(files.begin(), files.end());
  std::sort(stems.begin(), stems.end());
  const std::string near = nearest_name(path.stem(), stems);
  const auto found =
      std::ranges::find(files, near, [](const fs::path& file) { return file.stem().string(); });
  return near.empty() || found == files.end() ? "" : found->string();
}

Error unreadable_file(const fs::path& path, const std::string& why) {
  const std::string name = path.string();
  std::error_code ignored;
  const auto refused = [&](const std::string& reason, const std::string& hint) {
    return Error(ErrorKind::input, fmt::format("cannot read '{}': {}", name, reason), hint);
  };
  if (fs::is_directory(path, ignored)) return refused("it is a folder, expected a file", "name a file in it");
  if (name.find("://") != std::string::npos)
    return refused(why, "download it first: files are read from the disk");
  if (why == std::strerror(EACCES)) return refused(why, "ask its owner for permission");
  const std::string near = fs::exists(path, ignored) ? "" : file_meant(path);
  return refused(why, near.empty() ? "check the path" : fmt::format("did you mean '{}'?", near));
}

}  // namespace alpa
