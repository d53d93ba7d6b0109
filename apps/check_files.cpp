#include "apps/check_files.h"

#include <fmt/core.h>

#include <system_error>

#include "libalpa/base/error.h"
#include "libalpa/base/names.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

/// A file and the setting that names it.
struct NamedFile {
  const Setting* setting;
  fs::path path;

  std::string text() const { return fmt::format("{} '{}'", setting->name, path.string()); }
};

Error refused(const std::string& what, const std::string& hint) {
  return Error(ErrorKind::usage, what, hint);
}

/// Without links as far as there are files; "" where it cannot be looked at.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  // Of a path that begins with what does not exist it would stay relative.
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path() : whole;
}

bool are_same(const fs::path& a, const fs::path& b) {
  std::error_code not_there;
  return fs::equivalent(a, b, not_there) || (!resolved(a).empty() && resolved(a) == resolved(b));
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code not_there;
  if (!fs::is_directory(folder, not_there)) return false;
  fs::path at = resolved(file);
  while (at.has_relative_path()) {
    at = at.parent_path();
    if (fs::equivalent(at, folder, not_there)) return true;
  }
  return false;
}

void check_name(const NamedFile& output) {
  if (const std::string name = output.path.string(); printable(name, "") != name)
    throw refused(fmt::format("{} '{}': the name has control characters, or is not UTF-8",
                              output.setting->name, printable(name, "")),
                  "a name that can be printed");
}

void check_apart(const NamedFile& output, const NamedFile& other) {
  const std::string hint = fmt::format("another name for {}", output.setting->name);
  if (are_same(output.path, other.path))
    throw refused(fmt::format("{} is the same file as {}", output.text(), other.text()), hint);
  if (other.setting->role == FileRole::read && lies_in(output.path, other.path))
    throw refused(fmt::format("{} lies in {}, which is read", output.text(), other.text()), hint);
}

void check_free(const NamedFile& output, bool replaces) {
  std::error_code
      ignored;  // what cannot be looked at, or is a folder, cannot be written, which is reported then
  const fs::file_status there = fs::symlink_status(output.path, ignored);
  if (!fs::is_regular_file(there) && !fs::is_symlink(there)) return;
  if (replaces || output.setting->role == FileRole::continued) return;
  if (output.setting->is_earlier && output.setting->is_earlier(output.path)) return;
  throw refused(fmt::format("{} exists", output.text()),
                fmt::format("another name for {}, or --force to replace it", output.setting->name));
}

}  // namespace

void check_files(const Command& command, bool replaces) {
  std::vector<NamedFile> inputs, outputs;
  for (const Setting& setting : command.settings())
    if (setting.role != FileRole::none)
      for (const fs::path& path : setting.files())
        (setting.role == FileRole::read ? inputs : outputs).push_back({&setting, path});
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    check_name(*output);
    for (const NamedFile& input : inputs) check_apart(*output, input);
    for (auto earlier = outputs.begin(); earlier != output; ++earlier) check_apart(*output, *earlier);
    check_free(*output, replaces);
  }
}

}  // namespace alpa
