#include "libalpa/dataset/text_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  const auto hidden = [](const fs::path& path) { return path.filename().string().starts_with('.'); };
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
         ++entry) {
      if (hidden(entry->path()))
        entry.disable_recursion_pending();
      else if (entry->is_regular_file())
        files.push_back(entry->path());
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::input,
                fmt::format("cannot read '{}': {}", folder.string(), error.code().message()),
                "check the path");
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool begins_as_image(std::string_view bytes) {
  const bool is_pnm = bytes.size() > 2 && (bytes.starts_with("P5") || bytes.starts_with("P6")) &&
                      (bytes[2] == ' ' || bytes[2] == '\n');
  return is_pnm || bytes.starts_with("\x89PNG") || bytes.starts_with("\xff\xd8\xff");
}

TextFile text_file(const fs::path& path, const std::string& kind, SourceKind from) {
  return {path, from == SourceKind::json_lines || (from == SourceKind::automatic && kind == json_lines_kind)};
}

}  // namespace

bool holds_images(const fs::path& folder) {
  for (const fs::path& file : files_below(folder)) {
    const std::string first = first_bytes_of(file, format_bytes);
    if (begins_as_image(first)) return true;
    if (!first.empty() && text_kind(first).empty()) return false;
  }
  return true;  // which says what is wrong with it
}

std::vector<TextFile> text_files(const ConvertSettings& settings, Log& log) {
  std::vector<TextFile> files;
  const auto is_text = [](const std::string& kind) { return kind.empty() || kind == json_lines_kind; };
  for (const fs::path& source : settings.sources) {
    std::error_code ignored;
    if (!fs::is_directory(source, ignored)) {
      const std::string first = first_bytes_of(source, format_bytes), kind = text_kind(first);
      if (settings.from == SourceKind::automatic && !is_text(kind)) check_is_text(source, first);
      files.push_back(text_file(source, kind, settings.from));
      continue;
    }
    std::vector<fs::path> left_out;
    for (const fs::path& path : files_below(source)) {
      const std::string kind = text_kind(first_bytes_of(path, format_bytes));
      if (settings.from == SourceKind::automatic && !is_text(kind))
        left_out.push_back(path);
      else
        files.push_back(text_file(path, kind, settings.from));
    }
    if (!left_out.empty())
      log.info(fmt::format("'{}': {} left out that are no text, the first '{}'", source.string(),
                           count_text(std::ssize(left_out), "file"), left_out.front().string()));
  }
  if (files.empty())
    throw Error(ErrorKind::input, fmt::format("there is no text in '{}'", settings.sources.front().string()),
                "check the path");
  return files;
}

}  // namespace alpa
