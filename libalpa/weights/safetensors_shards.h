#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "libalpa/weights/safetensors_file.h"

namespace alpa {

/// The tensors of a safetensors file or, where the path ends in ".json", of the files beside it that this
/// index names: {"metadata": {...}, "weight_map": {"<tensor>": "<file>", ...}}, as transformers writes it for
/// large models (model.safetensors.index.json). Every tensor is in the file that the index names for it, and
/// no file has others. Failures are Error(input).
class SafetensorsShards {
 public:
  explicit SafetensorsShards(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }  ///< by name

  /// As SafetensorsReader::read().
  void read(const StoredTensor&, std::int64_t offset, std::int64_t bytes, void* into);

 private:
  void open(const std::map<std::string, std::string>& weight_map);

  std::filesystem::path path_;
  std::vector<SafetensorsReader> shards_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::size_t> shard_of_;  ///< by tensor
};

/// The files that SafetensorsShards reads: the one, or the index and those that it names. Throws Error(input)
/// where the index is no such file.
std::vector<std::filesystem::path> safetensors_files(const std::filesystem::path& path);

}  // namespace alpa
