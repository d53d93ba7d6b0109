#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "libalpa/model/definition.h"

namespace alpa {

/// Reads the parts of the block language (share/blocks/README.md) from the tables of one document; faults are
/// noted in the document.
class BlockReader {
 public:
  /// Places of blocks, steps and layers that have a fault are added to `unsound`.
  BlockReader(const TomlDocument& document, int source, std::set<SourceLocation>& unsound)
      : document_(document), source_(source), unsound_(unsound) {}

  /// Entries of a table of named numbers, in file order.
  std::vector<NamedExpression> read_numbers(const TomlTable&) const;

  /// A number, or an expression, at the top of a model file.
  NamedExpression read_number(const TomlTable&, const std::string& key) const;

  /// The inputs of an `[input]` table, in file order.
  std::vector<InputDefinition> read_inputs(const TomlTable&) const;

  /// The blocks of a `[block]` table, or the vertex functions of a `[vertex]` table.
  std::map<std::string, Block> read_blocks(const TomlTable&, bool are_vertex_functions = false) const;

  /// The `[graphs]` table.
  GraphsDefinition read_graphs(const TomlTable&) const;

  /// One `[[layer]]`: a block use that may tie weights.
  Step read_layer(const TomlTable&) const;

 private:
  Block read_block(const TomlEntry&, const TomlTable&, bool is_vertex) const;
  WeightDefinition read_weight(const TomlEntry&) const;
  void read_initializer(const TomlValue&, WeightDefinition&) const;
  Step read_step(const TomlTable&) const;
  Step read_metric(const TomlTable&) const;
  Step read_gather(const TomlTable&) const;
  Step read_scatter(const TomlTable&) const;
  Step read_use(const TomlTable&, const std::set<std::string>& reserved) const;
  Argument read_argument(const std::string& op, const TomlEntry&) const;
  std::vector<std::string> read_names(const TomlValue&) const;
  std::string read_name(const TomlValue&) const;
  std::string read_expression(const TomlValue&, const std::string& default_value = "0") const;
  SourceLocation place(TomlLocation at) const { return {source_, at}; }

  const TomlDocument& document_;
  int source_;
  std::set<SourceLocation>& unsound_;
};

/// Whether `text` can name a block, a value, a weight or a number: a letter or _, then letters, digits and _.
bool is_identifier(const std::string& text);

}  // namespace alpa
