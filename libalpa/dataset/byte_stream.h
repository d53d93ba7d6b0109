#pragma once
// Internal to this module.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "libalpa/base/byte_progress.h"
#include "libalpa/dataset/input_file.h"

namespace alpa {

/// The bytes of a file from its beginning on, those that it holds compressed (gzip) where it begins as such a
/// file. Throws Error(input) that names the file where it is damaged or cannot be read.
class ByteStream {
 public:
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  bool is_compressed() const;

  /// As many as there are, at most `most`; 0 at the end only.
  std::size_t read(char* into, std::size_t most);

  /// Leaves out the next `bytes`, which must be there; what is compressed is uncompressed up to there.
  void skip(std::int64_t bytes);

  std::int64_t file_bytes() const { return file_bytes_; }
  std::int64_t bytes_taken() const;  ///< of the file as it lies on disk

 private:
  struct Open;
  std::filesystem::path path_;
  std::int64_t file_bytes_;
  std::unique_ptr<Open> open_;
};

/// The first bytes of a file, uncompressed.
std::string first_bytes_of(const std::filesystem::path& path, std::size_t most);

/// A file without a name in `folder`, gone with the process; takes what is to be read in another order.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void append(std::string_view bytes);

  /// What was appended, as a file called `name`. Nothing may be appended any more.
  InputFile finished(const std::filesystem::path& name);

 private:
  std::filesystem::path folder_;
  int descriptor_;
};

/// The file itself, or, where it is compressed, its content in a scratch file.
InputFile open_uncompressed(const std::filesystem::path& path, const std::filesystem::path& scratch_folder,
                            Log& log);

}  // namespace alpa
