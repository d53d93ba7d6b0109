#include "libalpa/checkpoint/average_checkpoints.h"

#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libalpa/base/box_rows.h"
#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/checkpoint/state_differences.h"

namespace alpa {
namespace {

using Tensors = std::map<std::string, TensorType>;

bool is_averaged(const Tensors& tensors, const std::string& name) {
  return tensors.at(name).dtype != DType::i32 &&
         (!belongs_to_parameter(tensors, name) || name.ends_with(".master"));
}

/// What the mean of a tensor is taken of.
std::string source_of(const Tensors& tensors, const std::string& name) {
  const std::string master = name + ".master";
  return tensors.contains(master) ? master : name;
}

void check_same_weights(const std::filesystem::path& first, const Tensors& of_first,
                        const std::filesystem::path& other, const Tensors& of_other) {
  std::map<std::string, std::pair<std::string, std::string>> types;
  for (const auto& [name, type] : of_first)
    if (is_averaged(of_first, name)) types[name].first = type_text(type);
  for (const auto& [name, type] : of_other)
    if (is_averaged(of_other, name)) types[name].second = type_text(type);
  const std::string table = state_differences(types, "the first", "the other");
  if (!table.empty())
    throw Error(ErrorKind::input,
                fmt::format("'{}' and '{}' are checkpoints of different models: {}", first.string(),
                            other.string(), table),
                "checkpoints of one model, in one precision");
}

/// The mean of a tensor over all files into host memory for `type`.
void read_mean(const std::vector<TensorReader>& files, const std::string& name, const TensorType& type,
               const BytesRead& read, void* values) {
  const Tensors& tensors = files.front().tensors();
  const std::string from = source_of(tensors, name);
  const TensorType& stored = tensors.at(from);
  std::vector<double> sums;
  std::vector<std::byte> others;
  files.front().read(
      from, {Shape(stored.shape.size(), 0), stored.shape},
      [&](const TensorRegion& box, std::span<const std::byte> piece) {
        const auto count = static_cast<std::size_t>(element_count(box.count));
        sums.resize(count);
        others.resize(piece.size());
        for_float_type(stored.dtype, [&](auto zero) {
          using Stored = decltype(zero);
          const auto* const first = reinterpret_cast<const Stored*>(piece.data());
          for (std::size_t i = 0; i < count; ++i) sums[i] = to_float(first[i]);
          for (std::size_t f = 1; f < files.size(); ++f) {
            files[f].read(from, box, others.data());
            const auto* const more = reinterpret_cast<const Stored*>(others.data());
            for (std::size_t i = 0; i < count; ++i) sums[i] += to_float(more[i]);
          }
        });
        for_float_type(type.dtype, [&](auto zero) {
          using Own = decltype(zero);
          Own* const to = static_cast<Own*>(values) + element_at(stored.shape, box.offset);
          for (std::size_t i = 0; i < count; ++i)
            to[i] = from_float<Own>(static_cast<float>(sums[i] / static_cast<double>(files.size())));
        });
        read(std::ssize(piece) * std::ssize(files));
      });
}

}  // namespace

void average_checkpoints(std::span<const std::filesystem::path> checkpoints, std::size_t rest,
                         const std::filesystem::path& out, const Provenance& provenance, Log& log) {
  std::vector<TensorReader> files;
  for (const std::filesystem::path& path : checkpoints) {
    files.push_back(open_checkpoint(path));
    check_same_weights(checkpoints[0], files[0].tensors(), path, files.back().tensors());
  }
  const TensorReader& others = files[rest];
  const Tensors& types = others.tensors();
  std::int64_t bytes = 0, averaged = 0;
  for (const auto& [name, type] : types) {
    const bool is_mean = is_averaged(types, name);
    bytes += is_mean ? byte_count(types.at(source_of(types, name))) * std::ssize(files) : byte_count(type);
    averaged += is_mean ? 1 : 0;
  }
  ByteProgress progress(fmt::format("averaging {}", count_text(std::ssize(files), "checkpoint")), bytes, log);
  const auto count = [&](std::int64_t more) { progress.add(more); };
  std::vector<FilledTensor> tensors;
  for (const auto& [tensor, its_type] : types)
    tensors.push_back({tensor, its_type, [&, name = tensor, type = its_type](void* values) {
                         if (is_averaged(types, name)) return read_mean(files, name, type, count, values);
                         others.read_all(name, values);
                         count(byte_count(type));
                       }});
  save_checkpoint(out, checkpoint_facts(checkpoints[rest]), others.text_attribute("state_fingerprint"),
                  tensors, provenance);
  log.info(fmt::format("'{}': the mean of {} in {}, all else of '{}'", out.string(),
                       count_text(averaged, "tensor"), count_text(std::ssize(files), "checkpoint"),
                       checkpoints[rest].string()));
}

}  // namespace alpa
