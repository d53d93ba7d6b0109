#pragma once
#include <filesystem>

namespace alpa {

/// Where configs/ and share/ are: the folder that the environment variable ALPA_SOURCE_DIR names (test
/// programs may have been carried elsewhere), otherwise the sources that this was built from.
std::filesystem::path source_folder();

}  // namespace alpa
