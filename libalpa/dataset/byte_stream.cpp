#include "libalpa/dataset/byte_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/base/unreadable_file.h"

namespace alpa {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;

Error scratch_error(const std::filesystem::path& folder, int error_number) {
  return Error(
      ErrorKind::run_time,
      fmt::format("cannot write a scratch file in '{}': {}", folder.string(), std::strerror(error_number)),
      "it takes what is uncompressed, or the numbers of a CSV: free some space, or write --out elsewhere");
}

// Where the file system does not know files without names, one whose name is taken away.
int open_nameless(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0) return descriptor;
  std::string name = (folder / "alpa-scratch-XXXXXX").string();
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) throw scratch_error(folder, errno);
  unlink(name.c_str());
  return named;
}

}  // namespace

struct ByteStream::Open {
  gzFile file;
};

ByteStream::ByteStream(const std::filesystem::path& path)
    : path_(path), file_bytes_(InputFile(path).bytes()), open_(new Open{gzopen(path.c_str(), "rbe")}) {
  if (!open_->file) throw unreadable_file(path, std::strerror(errno));
  gzbuffer(open_->file, piece_bytes);
}

ByteStream::~ByteStream() { gzclose(open_->file); }

bool ByteStream::is_compressed() const { return gzdirect(open_->file) == 0; }

std::size_t ByteStream::read(char* into, std::size_t most) {
  const int got = gzread(open_->file, into, static_cast<unsigned>(most));
  int fault = Z_OK;
  const char* const said = gzerror(open_->file, &fault);
  // A file that ends too early is reported with its last bytes.
  if (got < 0 || fault != Z_OK)
    throw Error(ErrorKind::input,
                fmt::format("'{}' is truncated or damaged near byte {}: {}", path_.string(), bytes_taken(),
                            fault == Z_BUF_ERROR ? "its compressed content does not end" : said),
                "copy or make it again");
  return static_cast<std::size_t>(got);
}

void ByteStream::skip(std::int64_t bytes) {
  if (!is_compressed() && gzseek(open_->file, bytes, SEEK_CUR) >= 0) return;
  std::vector<char> piece(piece_bytes);
  while (bytes > 0) {
    const std::size_t got = read(piece.data(), static_cast<std::size_t>(std::min(bytes, std::ssize(piece))));
    if (got == 0)
      throw Error(ErrorKind::run_time, fmt::format("'{}' is shorter than it was", path_.string()),
                  "leave the data as it is while it is read");
    bytes -= static_cast<std::int64_t>(got);
  }
}

std::int64_t ByteStream::bytes_taken() const { return gzoffset(open_->file); }

std::string first_bytes_of(const std::filesystem::path& path, std::size_t most) {
  ByteStream stream(path);
  std::string bytes(most, '\0');
  bytes.resize(stream.read(bytes.data(), most));
  return bytes;
}

ScratchFile::ScratchFile(const std::filesystem::path& folder)
    : folder_(folder), descriptor_(open_nameless(folder)) {}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ScratchFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw scratch_error(folder_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

InputFile ScratchFile::finished(const std::filesystem::path& name) {
  return InputFile(name, std::exchange(descriptor_, -1));
}

InputFile open_uncompressed(const std::filesystem::path& path, const std::filesystem::path& scratch_folder,
                            Log& log) {
  ByteStream stream(path);
  if (!stream.is_compressed()) return InputFile(path);
  ScratchFile scratch(scratch_folder);
  ByteProgress progress(fmt::format("uncompressing '{}'", path.string()), stream.file_bytes(), log);
  std::vector<char> piece(piece_bytes);
  for (std::int64_t reported = 0;;) {
    const std::size_t count = stream.read(piece.data(), piece.size());
    if (count == 0) return scratch.finished(path);
    scratch.append({piece.data(), count});
    progress.add(stream.bytes_taken() - reported);
    reported = stream.bytes_taken();
  }
}

}  // namespace alpa
