#include "libalpa/model/reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "libalpa/base/checked.h"
#include "libalpa/base/options.h"
#include "libalpa/model/block_reader.h"
#include "libalpa/model/faults.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxBases = 8;

void overlay(std::vector<NamedExpression>& numbers, const std::vector<NamedExpression>& over) {
  for (const NamedExpression& entry : over) {
    const auto same = [&](const NamedExpression& old) { return old.name == entry.name; };
    const auto found = std::find_if(numbers.begin(), numbers.end(), same);
    if (found == numbers.end())
      numbers.push_back(entry);
    else
      *found = entry;
  }
}

class ModelReader {
 public:
  explicit ModelReader(const std::vector<fs::path>& folders) : folders_(folders) {}

  ModelText read(TomlDocument document) {
    read_model(std::move(document), 0);
    find_blocks();
    drop_unused_blocks();
    return std::move(text_);
  }

 private:
  int open(TomlDocument document) {
    text_.model.sources.push_back(document.file_name());
    text_.documents.push_back(std::move(document));
    return static_cast<int>(text_.documents.size()) - 1;
  }

  /// A file says what it changes: its numbers, settings and blocks go over those of its base one by one, its
  /// layers replace all layers of the base.
  void read_model(TomlDocument opened, int depth) {
    const int source = open(std::move(opened));
    TomlDocument& document = text_.documents[source];
    const TomlTable root = document.root();
    if (root.has("base")) read_base(root.value("base"), document.file_name(), depth);
    const BlockReader reader(document, source, text_.unsound);
    ModelDefinition& model = text_.model;
    model.name = root.name("name");
    if (root.has("dimensions")) overlay(model.dimensions, reader.read_numbers(root.table("dimensions")));
    if (root.has("constants")) overlay(model.constants, reader.read_numbers(root.table("constants")));
    if (root.has("paper_flops")) model.paper_flops = {reader.read_number(root, "paper_flops")};
    if (root.has("training")) read_training(root.table("training"));
    if (root.has("input")) model.inputs = reader.read_inputs(root.table("input"));
    if (root.has("graphs")) model.graphs = {reader.read_graphs(root.table("graphs"))};
    read_layers(reader, root);
    for (auto& [name, block] : blocks_of(reader, root)) model.blocks[name] = std::move(block);
  }

  /// Blocks, and vertex functions.
  static std::map<std::string, Block> blocks_of(const BlockReader& reader, const TomlTable& root) {
    std::map<std::string, Block> blocks;
    if (root.has("block")) blocks = reader.read_blocks(root.table("block"));
    if (!root.has("vertex")) return blocks;
    for (auto& [name, function] : reader.read_blocks(root.table("vertex"), true)) {
      if (blocks.contains(name))
        root.table("vertex").value(name).fault(fmt::format("there is a block '{}' too", name));
      blocks[name] = std::move(function);
    }
    return blocks;
  }

  void read_training(const TomlTable& table) {
    TrainingOptions& training = text_.model.training;
    read_options(table, training);
    if (!checked_element_count(std::array{training.batch, training.sequence}))
      table.fault(fmt::format("{} samples ('batch') of {} tokens ('sequence') are more than {}",
                              training.batch, training.sequence, kMostElements));
  }

  void read_base(const TomlValue& base, const std::string& file_name, int depth) {
    if (base.kind() != TomlKind::string) {
      base.string();
      return;
    }
    if (depth == kMaxBases) {
      base.fault(fmt::format("a model may build on {} others at most; is there a cycle?", kMaxBases));
      return;
    }
    const fs::path file = fs::path(file_name).parent_path() / base.string();
    if (fs::is_regular_file(file))
      read_model(read_toml(file), depth + 1);
    else
      base.fault(fmt::format("there is no file '{}'", file.string()));
  }

  void read_layers(const BlockReader& reader, const TomlTable& root) {
    if (!root.has("layer")) {
      if (!root.has("base"))
        root.fault("missing key 'layer', expected [[layer]] tables, in the order in which they run");
      return;
    }
    text_.model.layers.clear();
    for (const TomlTable& layer : root.tables("layer"))
      text_.model.layers.push_back(reader.read_layer(layer));
  }

  // Blocks from folders

  void find_blocks() {
    for (const Step& layer : text_.model.layers) find_block(layer);
    std::vector<std::string> names;
    for (const auto& [name, block] : text_.model.blocks) names.push_back(name);
    for (const std::string& name : names) find_inner_blocks(name);
  }

  /// By value: reading a block may move the others.
  void find_inner_blocks(const std::string& name) {
    const std::vector<Step> steps = text_.model.blocks.at(name).steps;
    for (const Step& step : steps)
      if (!step.block.empty()) find_block(step);
  }

  void find_block(const Step& use) {
    if (text_.model.blocks.contains(use.block) || missing_.contains(use.block) || !is_identifier(use.block))
      return;
    for (const fs::path& folder : folders_) {
      const fs::path file = folder / (use.block + ".toml");
      if (!fs::is_regular_file(file)) continue;
      read_block_file(use.block, read_toml(file));
      if (text_.model.blocks.contains(use.block)) find_inner_blocks(use.block);
      return;
    }
    const std::string near = suggestion(use.block, known_blocks());
    document_of(use).fault(
        use.place.at,
        fmt::format("no block is named '{}'{}", use.block,
                    near.empty() ? "; try: one of share/blocks, or a [block." + use.block + "]" : near));
  }

  void read_block_file(const std::string& name, TomlDocument opened) {
    const int source = open(std::move(opened));
    TomlDocument& document = text_.documents[source];
    const TomlTable root = document.root();
    const std::map<std::string, Block> blocks = blocks_of(BlockReader(document, source, text_.unsound), root);
    const auto found = blocks.find(name);
    if (blocks.size() != 1 || found == blocks.end())
      root.fault(fmt::format("expected one block, [block.{}] or [vertex.{}]", name, name));
    missing_.insert(name);
    if (found != blocks.end()) text_.model.blocks[name] = found->second;
  }

  TomlDocument& document_of(const Step& step) { return text_.documents[step.place.source]; }

  std::vector<std::string> known_blocks() const {
    std::set<std::string> names;
    for (const auto& [name, block] : text_.model.blocks) names.insert(name);
    for (const fs::path& folder : folders_) {
      std::error_code ignored;  // a folder that cannot be listed has no names to suggest
      for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".toml") names.insert(entry.path().stem().string());
    }
    return {names.begin(), names.end()};
  }

  /// Blocks of the file that nothing uses are kept for the check of names, blocks of a base are not.
  void drop_unused_blocks() {
    std::set<std::string> used;
    std::vector<std::string> open_names;
    const auto take = [&](const std::vector<Step>& steps) {
      for (const Step& step : steps)
        if (text_.model.blocks.contains(step.block) && used.insert(step.block).second)
          open_names.push_back(step.block);
    };
    take(text_.model.layers);
    while (!open_names.empty()) {
      const std::string name = open_names.back();
      open_names.pop_back();
      take(text_.model.blocks.at(name).steps);
    }
    std::erase_if(text_.model.blocks, [&](const auto& entry) {
      return entry.second.place.source != 0 && !used.contains(entry.first);
    });
  }

  const std::vector<fs::path>& folders_;
  ModelText text_;
  std::set<std::string> missing_;
};

}  // namespace

ModelText read_model_text(TomlDocument document, const std::vector<fs::path>& block_folders) {
  return ModelReader(block_folders).read(std::move(document));
}

}  // namespace alpa
