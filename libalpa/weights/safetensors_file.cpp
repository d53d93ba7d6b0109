#include "libalpa/weights/safetensors_file.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/unreadable_file.h"

namespace alpa {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

constexpr std::int64_t length_bytes = 8;

}  // namespace

SafetensorsReader::SafetensorsReader(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failed;
  const bool is_file = std::filesystem::is_regular_file(path_, failed);
  if (is_file) file_.open(path_, std::ios::binary);
  if (!is_file || !file_)
    throw unreadable_file(path_, failed    ? failed.message()
                                 : is_file ? std::strerror(EACCES)
                                           : "not a regular file");
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::input, fmt::format("'{}' is not a safetensors file: {}", path_.string(), what),
                "give a whole .safetensors file, not a link to one (Git LFS); what PyTorch saved as .bin, "
                ".pt or .pth, save with "
                "safetensors.torch.save_file");
  };
  std::uint64_t length = 0;
  if (bytes < length_bytes) refuse(fmt::format("it has {} bytes, expected 8 or more", bytes));
  read_at(0, length_bytes, &length);
  if (length > static_cast<std::uint64_t>(longest_safetensors_header))
    refuse(fmt::format("its header would have {} bytes, expected at most {}", length,
                       longest_safetensors_header));
  data_ = length_bytes + static_cast<std::int64_t>(length);
  if (data_ > bytes)
    refuse(fmt::format("its header would have {} bytes, and the file has {}", length, bytes));
  std::string header(length, '\0');
  read_at(length_bytes, static_cast<std::int64_t>(length), header.data());
  for (StoredTensor& tensor : parse_safetensors_header(header, bytes - data_, path_.string())) {
    std::string name = tensor.name;
    tensors_.emplace(std::move(name), std::move(tensor));
  }
}

void SafetensorsReader::read_at(std::int64_t offset, std::int64_t bytes, void* into) {
  file_.seekg(offset);
  file_.read(static_cast<char*>(into), bytes);
  if (!file_)
    throw Error(ErrorKind::input,
                fmt::format("cannot read {} bytes at byte {} of '{}'", bytes, offset, path_.string()),
                "the file may be changing, or its disk failing");
}

void SafetensorsReader::read(const StoredTensor& tensor, std::int64_t offset, std::int64_t bytes,
                             void* into) {
  assert(offset >= 0 && bytes >= 0 && tensor.begin + offset + bytes <= tensor.end);
  if (bytes > 0) read_at(data_ + tensor.begin + offset, bytes, into);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<StoredTensor> tensors)
    : file_(path), tensors_(std::move(tensors)) {
  const std::string header = safetensors_header(tensors_);
  const auto length = std::bit_cast<std::array<char, length_bytes>>(std::uint64_t{header.size()});
  data_ = length_bytes + static_cast<std::int64_t>(header.size());
  file_.resize(data_ + (tensors_.empty() ? 0 : tensors_.back().end));
  file_.write_at(0, {length.data(), length.size()});
  file_.write_at(length_bytes, header);
}

void SafetensorsWriter::write(const StoredTensor& tensor, std::string_view bytes) {
  assert(static_cast<std::int64_t>(bytes.size()) == tensor.end - tensor.begin);
  file_.write_at(data_ + tensor.begin, bytes);
}

}  // namespace alpa
