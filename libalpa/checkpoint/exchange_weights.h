#pragma once
#include <filesystem>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/h5/provenance.h"

// Weights between checkpoints and safetensors files with the names of GPT-2, Llama, BERT or the
// model itself (weights/weight_names.h), one tensor at a time.

namespace alpa {

/// What becomes of weights that are NaN or infinite, as they are read or in the model's type.
enum class NonFinite { refused, taken };

/// Writes a checkpoint of step 0 for the model of a training graph: parameters, and the f32 masters of bf16
/// ones, from a safetensors file or the index of several (SafetensorsShards), all else as a run begins with
/// it. Throws Error(input) where the file is damaged or its tensors are not those of the model, or hold
/// numbers that are refused.
void import_weights(const std::filesystem::path& weights, const Graph& graph, const TrainingOptions& options,
                    const std::filesystem::path& checkpoint, NonFinite non_finite,
                    const Provenance& provenance, Log& log);

/// Writes the parameters of a checkpoint, in their own types, as a safetensors file with the names of
/// `family` (WeightFamily::name). Throws Error(input), also where they are not all that the family has.
void export_weights(const std::filesystem::path& checkpoint, const std::string& family,
                    const std::filesystem::path& weights, Log& log);

}  // namespace alpa
