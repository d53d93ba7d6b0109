#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/h5/atomic_file.h"
#include "libalpa/weights/safetensors_header.h"

namespace alpa {

/// Reads a safetensors file, a piece at a time: 8 bytes with the header's length (little endian), the header
/// (JSON), the data. Failures are Error(input).
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }  ///< by name

  /// `bytes` bytes of a tensor from its byte `offset` on.
  void read(const StoredTensor&, std::int64_t offset, std::int64_t bytes, void* into);

 private:
  void read_at(std::int64_t offset, std::int64_t bytes, void* into);

  std::filesystem::path path_;
  std::ifstream file_;
  std::int64_t data_ = 0;  ///< where it begins
  std::map<std::string, StoredTensor> tensors_;
};

/// Writes a safetensors file; it stands under its name when it is whole and on disk.
class SafetensorsWriter {
 public:
  /// `tensors` need no places; they come in the order in which they lie.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<StoredTensor> tensors);

  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// All the bytes of one of tensors().
  void write(const StoredTensor&, std::string_view bytes);
  void publish() { file_.publish(); }

 private:
  AtomicFile file_;
  std::int64_t data_ = 0;
  std::vector<StoredTensor> tensors_;
};

}  // namespace alpa
