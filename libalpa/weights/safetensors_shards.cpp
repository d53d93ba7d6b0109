#include "libalpa/weights/safetensors_shards.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/weights/safetensors_index.h"

namespace alpa {

std::vector<std::filesystem::path> safetensors_files(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files{path};
  if (path.extension() != ".json") return files;
  std::set<std::string> shards;
  for (const auto& [tensor, file] : read_safetensors_index(path)) shards.insert(file);
  for (const std::string& shard : shards) files.push_back(path.parent_path() / shard);
  return files;
}

SafetensorsShards::SafetensorsShards(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.extension() == ".json") {
    open(read_safetensors_index(path_));
    return;
  }
  shards_.emplace_back(path_);
  tensors_ = shards_[0].tensors();
  for (const auto& [name, tensor] : tensors_) shard_of_[name] = 0;
}

void SafetensorsShards::open(const std::map<std::string, std::string>& weight_map) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::input, fmt::format("'{}' and its files differ: {}", path_.string(), what),
                "fetch the index and all its files again, of the same version");
  };
  std::set<std::string> files;
  for (const auto& [tensor, file] : weight_map) files.insert(file);
  for (const std::string& file : files) {
    const SafetensorsReader& shard = shards_.emplace_back(path_.parent_path() / file);
    for (const auto& [name, tensor] : shard.tensors()) {
      const auto place = weight_map.find(name);
      if (place == weight_map.end())
        refuse(fmt::format("tensor '{}' of '{}' is not in the index", name, file));
      if (place->second != file)
        refuse(fmt::format("tensor '{}' is in '{}', expected in '{}' alone", name, file, place->second));
      tensors_.emplace(name, tensor);
      shard_of_.emplace(name, shards_.size() - 1);
    }
  }
  for (const auto& [name, file] : weight_map)
    if (!tensors_.contains(name)) refuse(fmt::format("tensor '{}' is not in '{}'", name, file));
}

void SafetensorsShards::read(const StoredTensor& tensor, std::int64_t offset, std::int64_t bytes,
                             void* into) {
  shards_[shard_of_.at(tensor.name)].read(tensor, offset, bytes, into);
}

}  // namespace alpa
