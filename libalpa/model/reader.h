#pragma once
#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/model/definition.h"

namespace alpa {

/// A model as its files say it, before names are checked. The documents stay open, so that faults found later
/// are reported together with those of reading.
struct ModelText {
  ModelDefinition model;
  std::deque<TomlDocument> documents;  ///< one per ModelDefinition::sources
  std::set<SourceLocation> unsound;    ///< blocks, steps and layers that had a fault
};

/// Reads a model, the files it is based on, and the blocks that it uses from the block folders. Faults are
/// noted in the documents. Throws Error(input) where a file cannot be read or is no TOML at all.
ModelText read_model_text(TomlDocument, const std::vector<std::filesystem::path>& block_folders);

}  // namespace alpa
