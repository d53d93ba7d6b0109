#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/checkpoint/exchange_weights.h"
#include "libalpa/weights/match_weights.h"
#include "libalpa/weights/safetensors_file.h"

namespace alpa {
namespace {

const WeightFamily& family_called(const std::string& name) {
  std::vector<std::string> known;
  for (const WeightFamily& family : weight_families()) {
    if (family.name == name) return family;
    known.emplace_back(family.name);
  }
  const std::string near = nearest_name(name, known);
  throw Error(ErrorKind::usage, fmt::format("--names {} is not known", name),
              fmt::format("{}one of {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                          fmt::join(known, ", ")));
}

std::map<std::string, Shape> weight_shapes(const std::map<std::string, TensorType>& tensors) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, type] : tensors)
    if (!belongs_to_parameter(tensors, name)) shapes[name] = type.shape;
  return shapes;
}

using PlacesByTheirs = std::map<std::string, std::vector<const WeightPlace*>>;

/// The tensor that parts of ours make up. Throws where they leave something of it open.
StoredTensor tensor_of(const std::string& name, const std::vector<const WeightPlace*>& parts,
                       const std::map<std::string, TensorType>& ours, const WeightFamily& family) {
  const DType dtype = ours.at(parts.front()->ours).dtype;
  const Shape& shape = parts.front()->where.their_shape();
  std::int64_t elements = 0;
  for (const WeightPlace* part : parts) {
    const TensorType& type = ours.at(part->ours);
    elements += part->adds ? element_count(shape) : element_count(type.shape);
    if (part->where.their_shape() != shape || type.dtype != dtype) elements = -1;
    if (elements < 0) break;
  }
  if (elements != element_count(shape) || dtype == DType::i32)
    throw Error(ErrorKind::input,
                fmt::format("'{}' of {} is made of {}, which do not make up a tensor of {}", name,
                            family.sentence, count_text(std::ssize(parts), "tensor"), shape_text(shape)),
                "the model is of another form (groups of keys, or missing projections); try another family");
  return {name, dtype == DType::f32 ? "F32" : dtype == DType::bf16 ? "BF16" : "F16", shape};
}

/// In the order in which they are to lie: wide types first, so that all are aligned.
std::vector<StoredTensor> tensors_of(const PlacesByTheirs& places,
                                     const std::map<std::string, TensorType>& ours,
                                     const WeightFamily& family) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, parts] : places) tensors.push_back(tensor_of(name, parts, ours, family));
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const StoredTensor& tensor) { return tensor.dtype == "F32"; });
  return tensors;
}

void assemble(const TensorReader& checkpoint, const std::vector<const WeightPlace*>& parts,
              std::string& bytes) {
  std::string ours;
  for (const WeightPlace* part : parts) {
    if (part->adds) continue;  // it is in the sum; zeros are left to add
    const TensorType& type = checkpoint.tensors().at(part->ours);
    if (part->where.is_same()) {
      checkpoint.read_all(part->ours, bytes.data());
      continue;
    }
    ours.resize(static_cast<std::size_t>(byte_count(type)));
    checkpoint.read_all(part->ours, ours.data());
    part->where.scatter(type.dtype, ours.data(), bytes.data());
  }
}

}  // namespace

void export_weights(const std::filesystem::path& checkpoint, const std::string& family_name,
                    const std::filesystem::path& weights, Log& log) {
  const WeightFamily& family = family_called(family_name);
  const TensorReader from = open_checkpoint(checkpoint);
  const std::vector<WeightPlace> all =
      in_step(fmt::format("naming the weights of '{}'", checkpoint.string()),
              [&] { return place_all_weights(family, weight_shapes(from.tensors())); });
  PlacesByTheirs places;
  for (const WeightPlace& place : all) places[place.theirs].push_back(&place);
  SafetensorsWriter to(weights, tensors_of(places, from.tensors(), family));
  const std::int64_t bytes = to.tensors().empty() ? 0 : to.tensors().back().end;
  ByteProgress progress(fmt::format("writing '{}'", weights.string()), bytes, log);
  std::string values;
  for (const StoredTensor& tensor : to.tensors()) {
    values.assign(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    assemble(from, places.at(tensor.name), values);
    to.write(tensor, values);
    progress.add(tensor.end - tensor.begin);
  }
  to.publish();
  log.info(fmt::format("{} of '{}' are '{}', named as in {}", count_text(std::ssize(to.tensors()), "tensor"),
                       checkpoint.string(), weights.string(), family.sentence));
}

}  // namespace alpa
