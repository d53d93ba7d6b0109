#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/checkpoint/exchange_weights.h"
#include "libalpa/checkpoint/initial_state.h"
#include "libalpa/weights/match_weights.h"
#include "libalpa/weights/safetensors_shards.h"

namespace alpa {
namespace {

DType stored_type(const StoredTensor& tensor) {
  return tensor.dtype == "F32" ? DType::f32 : tensor.dtype == "BF16" ? DType::bf16 : DType::f16;
}

/// Fills one parameter, in its own type or as f32 master.
void read_weight(SafetensorsShards& file, const MatchedWeights& matched, const std::string& name, DType type,
                 void* values) {
  for (const bool adds : {false, true})
    for (const WeightPlace& place : matched.places) {
      if (place.ours != name || place.adds != adds) continue;
      const StoredTensor& tensor = *matched.theirs.at(place.theirs);
      const DType stored = stored_type(tensor);
      const std::int64_t element = dtype_bytes(stored);
      const auto read = [&](std::int64_t first, std::int64_t count, void* into) {
        file.read(tensor, first * element, count * element, into);
      };
      place.where.gather(stored, read, type, adds, values);
    }
}

void check_finite(const SafetensorsShards& file, const MatchedWeights& matched, const std::string& name,
                  const TensorType& type, const void* values) {
  for_float_type(type.dtype, [&](auto zero) {
    const auto* const numbers = static_cast<const decltype(zero)*>(values);
    const std::int64_t count = element_count(type.shape);
    for (std::int64_t i = 0; i < count; ++i) {
      const float number = to_float(numbers[i]);
      if (std::isfinite(number)) continue;
      std::string theirs;
      for (const WeightPlace& place : matched.places)
        if (place.ours == name)
          theirs += fmt::format("{}'{}'", theirs.empty() ? "" : ", ", matched.theirs.at(place.theirs)->name);
      throw Error(
          ErrorKind::input,
          fmt::format("{} of '{}', which is the model's '{}': element {} is {} in {}", theirs,
                      file.path().string(), name, i, number, dtype_name(type.dtype)),
          "weights of a run that did not diverge, a wider [training] precision, or --allow-non-finite "
          "to take them as they are");
    }
  });
}

bool have_same_bytes(SafetensorsShards& file, const StoredTensor& a, const StoredTensor& b) {
  const std::int64_t bytes = a.end - a.begin;
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  constexpr std::int64_t most = 1 << 20;
  std::string of_a(most, '\0'), of_b(most, '\0');
  for (std::int64_t at = 0; at < bytes; at += most) {
    const std::int64_t count = std::min(most, bytes - at);
    file.read(a, at, count, of_a.data());
    file.read(b, at, count, of_b.data());
    if (std::memcmp(of_a.data(), of_b.data(), static_cast<std::size_t>(count)) != 0) return false;
  }
  return true;
}

/// What repeats another tensor of the file must repeat it: the model has it once.
void check_copies(SafetensorsShards& file, const MatchedWeights& matched) {
  for (const std::string& copy : matched.copies)
    for (const auto& [name, original] : matched.family->copies) {
      if (name != copy) continue;
      const StoredTensor& a = *matched.theirs.at(copy);
      const StoredTensor& b = *matched.theirs.at(std::string(original));
      if (!have_same_bytes(file, a, b))
        throw Error(ErrorKind::input,
                    fmt::format("'{}' and '{}' of '{}' differ, and the model has one tensor for both", a.name,
                                b.name, file.path().string()),
                    "leave out the model's `tie`, so that it has both");
    }
}

/// Of parameters, and of running averages, which a trained model needs too.
std::map<std::string, Shape> weight_shapes(const Graph& graph) {
  std::map<std::string, TensorType> types;
  for (const State& state : graph.states) types[state.name] = unpadded_type(graph, state);
  std::map<std::string, Shape> shapes;
  for (const State& state : graph.states)
    if (state.is_parameter || !belongs_to_parameter(types, state.name))
      shapes[state.name] = types.at(state.name).shape;
  return shapes;
}

}  // namespace

void import_weights(const std::filesystem::path& weights, const Graph& graph, const TrainingOptions& options,
                    const std::filesystem::path& checkpoint, NonFinite non_finite,
                    const Provenance& provenance, Log& log) {
  SafetensorsShards file(weights);
  const std::map<std::string, Shape> shapes = weight_shapes(graph);
  const MatchedWeights matched = match_weights(shapes, file.tensors(), weights.string());
  check_copies(file, matched);
  std::int64_t bytes = 0;
  for (const State& state : graph.states) bytes += byte_count(unpadded_type(graph, state));
  ByteProgress progress(fmt::format("writing '{}'", checkpoint.string()), bytes, log);
  const auto fill = [&](const State& state, void* values) {
    const TensorType type = unpadded_type(graph, state);
    if (shapes.contains(state.name) || !state.follows.empty()) {
      const std::string& name = state.follows.empty() ? state.name : state.follows;
      read_weight(file, matched, name, type.dtype, values);
      if (non_finite == NonFinite::refused) check_finite(file, matched, name, type, values);
    } else {
      const std::int64_t count = element_count(type.shape);
      fill_initial_state(graph, state, {Shape(type.shape.size(), 0), type.shape, 0, count}, options.seed,
                         values);
    }
    progress.add(byte_count(type));
  };
  CheckpointFacts facts;  // of a run that has not begun
  facts.training_options = kept_options(options);
  save_checkpoint(checkpoint, facts, graph, fill, provenance);
  log.info(fmt::format("{} parameters from '{}', named as in {}, are '{}', a checkpoint of step 0",
                       parameter_count(graph), weights.string(), matched.family->sentence,
                       checkpoint.string()));
  if (!matched.unused.empty())
    log.info(fmt::format("{} left out, for which training has no use: '{}'{}",
                         count_text(std::ssize(matched.unused), "tensor"), matched.unused.front(),
                         matched.unused.size() > 1 ? ", ..." : ""));
}

}  // namespace alpa
