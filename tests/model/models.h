#pragma once
#include <filesystem>
#include <string>

#include "libalpa/model/model.h"

namespace alpa {

/// The model of a file below the source folder, with the blocks of the suite.
inline ModelDefinition model_file(const std::string& file) {
  const std::filesystem::path source = ALPA_SOURCE_DIR;
  return read_model(source / file, {source / "share" / "blocks"});
}

}  // namespace alpa
