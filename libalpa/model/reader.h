#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/model/definition.h"

namespace alpa {

/// A model as its files say it, before names are checked.
///
/// The documents stay open, so that faults found later are reported together with those of reading.
struct ModelText {
  ModelDefinition model;
  std::deque<TomlDocument> documents;  ///< one per ModelDefinition::sources
  std::set<std::string> unsound;       ///< blocks with a fault inside; "" stands for the layers
};

/// Reads the text of a model, the files it is based on, and the blocks that are used and found in `block_folders`.
/// Faults are noted in the documents. Throws Error(input) where a file is no TOML at all.
ModelText read_model_text(TomlDocument, const std::vector<std::filesystem::path>& block_folders);

/// The block definitions of a `[block]` table, by name; used for model files and for the files of block folders.
class BlockReader {
 public:
  BlockReader(ModelText& text, int source) : text_(text), source_(source) {}

  /// Blocks that are known already stay as they are.
  void read_blocks(const TomlTable& blocks);
  Step read_layer(const TomlTable&);

 private:
  Block read_block(const std::string& name, const TomlTable&);
  std::vector<WeightDefinition> read_weights(const TomlTable&);
  void read_initializer(const TomlValue&, WeightDefinition&);
  Step read_step(const TomlTable&);
  void read_target(const TomlTable&, Step&);
  void read_arguments(const TomlTable&, Step&);
  std::vector<NamedExpression> read_numbers(const TomlTable&);
  std::vector<std::string> names(const TomlTable&, const std::string& key);
  std::string name(const TomlValue&);
  Place place(TomlLocation at) const { return {source_, at}; }

  friend class ModelTextReader;
  ModelText& text_;
  int source_;
};

}  // namespace alpa
