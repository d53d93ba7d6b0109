#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace alpa {

/// The file of each tensor, from the index of a model in several files (SafetensorsShards). Nothing in it is
/// trusted: files are names that end in ".safetensors", without a folder; there are at most 512; no tensor is
/// there twice. Throws Error(input).
std::map<std::string, std::string> read_safetensors_index(const std::filesystem::path& path);

}  // namespace alpa
