#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "libalpa/base/error.h"
#include "libalpa/h5/rows.h"
#include "libalpa/tokenizer/tokenizer.h"
#include "libalpa/tokenizer/tokenizer_kinds.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

constexpr const char* bytes_name = "bytes";
constexpr std::int64_t most_file_bytes = 64 << 20;
constexpr const char* kinds_hint =
    "bytes, a tokenizer.json, a model of SentencePiece, or an HDF5 file that alpa-train convert made with "
    "one";

Error unusable(const std::string& name, const std::string& why, const char* hint = kinds_hint) {
  return Error(ErrorKind::input, fmt::format("'{}' {}", name, why), hint);
}

void check_size(const std::string& name, std::int64_t bytes) {
  if (bytes > most_file_bytes)
    throw unusable(name, fmt::format("has {} bytes, and 64 MiB is the most for a tokenizer", bytes));
}

std::string content_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file) throw unusable(name, fmt::format("cannot be read: {}", std::strerror(errno)));
  const std::int64_t bytes = file.tellg();
  check_size(name, bytes);
  std::string content(static_cast<std::size_t>(bytes), '\0');
  file.seekg(0).read(content.data(), bytes);
  if (!file) throw unusable(name, "cannot be read to its end");
  return content;
}

bool begins_as_hdf5(const std::string& name) {
  char first[8] = {};
  std::ifstream(name, std::ios::binary).read(first, sizeof first);
  return std::string_view(first, sizeof first) == "\x89HDF\r\n\x1a\n";
}

H5Rows carried_rows(const std::string& name) {
  return H5Rows(name, "/tokenizer", "convert the text again with --tokenizer");
}

std::optional<std::int32_t> end_of_text(const H5Rows& rows) {
  const auto end = rows.integer_attribute("end_of_text");
  if (!end) return std::nullopt;
  if (*end < 0 || *end > std::numeric_limits<std::int32_t>::max())
    throw rows.error(fmt::format("end_of_text is {}, expected an id", *end));
  return static_cast<std::int32_t>(*end);
}

TokenizerFile carried_by_hdf5(const std::string& name) {
  if (!has_dataset(name, "/tokenizer"))
    throw unusable(name, "does not say which tokenizer made its tokens: it has no /tokenizer",
                   "give the tokenizer's own file, or convert the text again with --tokenizer");
  const H5Rows rows = carried_rows(name);
  if (!rows.is_bytes() || rows.extent().size() != 1) throw rows.error("expected one dimension of bytes");
  const std::int64_t bytes = rows.extent()[0];
  check_size(name, bytes);
  TokenizerFile file{name, std::string(static_cast<std::size_t>(bytes), '\0')};
  if (bytes > 0) rows.read(0, bytes, reinterpret_cast<std::uint8_t*>(file.content.data()));
  file.end_of_text = end_of_text(rows);
  return file;
}

}  // namespace

TokenizerFile read_tokenizer_file(const std::string& name) {
  if (name == bytes_name) return {name, bytes_name};
  std::error_code ignored;
  if (fs::exists(name, ignored) && !fs::is_regular_file(name, ignored))
    throw unusable(name, "is no regular file");
  return begins_as_hdf5(name) ? carried_by_hdf5(name) : TokenizerFile{name, content_of(name)};
}

std::optional<std::int32_t> carried_end_of_text(const std::string& hdf5_file) {
  return has_dataset(hdf5_file, "/tokenizer") ? end_of_text(carried_rows(hdf5_file)) : std::nullopt;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFile& file) {
  if (file.content == bytes_name) return make_byte_tokenizer();
  const std::size_t first = file.content.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && file.content[first] == '{') return make_byte_level_bpe(file);
  if (is_sentencepiece(file.content)) return make_sentencepiece(file);
  throw unusable(file.name, file.content.empty() ? "is empty" : "is no tokenizer that is known");
}

std::optional<std::int32_t> end_of_text(const TokenizerFile& file, const Tokenizer& tokenizer) {
  return file.end_of_text ? file.end_of_text : tokenizer.end_of_text();
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name) {
  return make_tokenizer(read_tokenizer_file(name));
}

}  // namespace alpa
