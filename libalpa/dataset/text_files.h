#pragma once
// Internal to this module.
#include <filesystem>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/dataset/convert_settings.h"

namespace alpa {

/// A file of texts: one document, or JSON lines with one in each.
struct TextFile {
  std::filesystem::path path;
  bool has_json_lines;
};

/// Whether images lie below a folder, and no text before these.
bool holds_images(const std::filesystem::path& folder);

/// The files of the sources in their order; of a folder all below it, sorted by their paths, but for hidden
/// ones and those that are no text, which the log lists. Throws Error(input) for a source that is no text,
/// naming what it seems to be, and where no file is left.
std::vector<TextFile> text_files(const ConvertSettings& settings, Log& log);

}  // namespace alpa
