#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace alpa {

/// The lines of a small text file, without their ends (LF or CR LF). Throws Error(input) where it cannot be
/// read.
std::vector<std::string> file_lines(const std::filesystem::path&);

}  // namespace alpa
