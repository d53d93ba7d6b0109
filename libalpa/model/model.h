#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/model/definition.h"

namespace alpa {

/// Reads a model file in the language of share/blocks/README.md. Blocks that the file does not define itself
/// are looked for as NAME.toml in `block_folders`, first folder first. Throws Error(input) with one line
/// "file:line:column: ..." for every fault found.
ModelDefinition read_model(const std::filesystem::path& file,
                           const std::vector<std::filesystem::path>& block_folders);

/// The same for a text; `file_name` is what faults call it, and a `base` is looked for beside it.
ModelDefinition parse_model(std::string_view text, const std::string& file_name,
                            const std::vector<std::filesystem::path>& block_folders = {});

/// The model with its vocabularies padded (`pad_to`) for so many devices to split them evenly; nullopt where
/// they can as it is, where it says itself what to pad, and where its optimizer would see the padding.
std::optional<ModelDefinition> with_padded_vocabulary(const ModelDefinition&, int devices);

/// Likewise with its heads padded (`pad_heads_to`) to a multiple of a power of two that divides so many
/// devices: the largest by which no weight gains more than an eighth.
std::optional<ModelDefinition> with_padded_heads(const ModelDefinition&, int devices);

/// FLOPs of a training step by the formula that the file gives as its paper's (`paper_flops`); nullopt where
/// it gives none.
std::optional<double> paper_flops(const ModelDefinition&);

/// The forward graph for one micro-batch of `samples` samples. With `training`, dropout is active.
Graph forward_graph(const ModelDefinition&, std::int64_t samples, bool training);

/// forward_graph with gradients, their sum over micro-batches and the update (training_graph).
Graph training_step_graph(const ModelDefinition&, std::int64_t samples);

}  // namespace alpa
