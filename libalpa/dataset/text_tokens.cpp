#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/dataset/token_formats.h"

namespace alpa {
namespace {

using namespace std::string_view_literals;

/// How other files begin.
constexpr struct {
  std::string_view begin, kind;
} kKinds[] = {{"PAR1"sv, "a Parquet file"},
              {"ARROW1"sv, "an Arrow file"},
              {"FEA1"sv, "a Feather file"},
              {"ORC"sv, "an ORC file"},
              {"Obj\x01"sv, "an Avro file"},
              {"PK\x03\x04"sv, "a ZIP archive (also NumPy's .npz, PyTorch's .pt, .docx, .xlsx)"},
              {"\x93NUMPY"sv, "a NumPy array"},
              {"\x80\x02"sv, "a pickle of Python"},
              {"\x80\x03"sv, "a pickle of Python"},
              {"\x80\x04"sv, "a pickle of Python"},
              {"\x80\x05"sv, "a pickle of Python"},
              {"SQLite format 3"sv, "an SQLite database"},
              {"\x1f\x8b"sv, "a gzip file"},
              {"\x28\xb5\x2f\xfd"sv, "a zstd file"},
              {"\xfd"
               "7zXZ"sv,
               "an xz file"},
              {"BZh"sv, "a bzip2 file"},
              {"\x04\x22\x4d\x18"sv, "an lz4 file"},
              {"7z\xbc\xaf"sv, "a 7z archive"},
              {"%PDF-"sv, "a PDF"},
              {"\x89PNG"sv, "a PNG image"},
              {"\xff\xd8\xff"sv, "a JPEG image"},
              {"GIF8"sv, "a GIF image"},
              {"\x89HDF"sv, "an HDF5 file"},
              {"\x7f"
               "ELF"sv,
               "a program"},
              {"\xff\xfe"sv, "text of 16 bits a character"},
              {"\xfe\xff"sv, "text of 16 bits a character"}};

/// Whether the first line that is not blank is a JSON object, as far as it can be seen.
bool is_json_line(std::string_view bytes) {
  bytes.remove_prefix(byte_order_mark(bytes));
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const auto first = std::find_if_not(line.begin(), line.end(), is_space);
  if (first == line.end() || *first != '{') return false;
  const auto key = std::find_if_not(first + 1, line.end(), is_space);
  if (key == line.end() || *key != '"') return false;
  return line.size() == bytes.size() || *std::find_if_not(line.rbegin(), line.rend(), is_space) == '}';
}

}  // namespace

std::string text_kind(std::string_view bytes) {
  for (const auto& [begin, kind] : kKinds)
    if (bytes.starts_with(begin)) return std::string(kind);
  // A header of JSON behind its length.
  if (bytes.size() > 9 && bytes.substr(2, 6) == "\0\0\0\0\0\0"sv && bytes[8] == '{')
    return "a safetensors file";
  if (bytes.substr(std::min<std::size_t>(257, bytes.size())).starts_with("ustar")) return "a tar archive";
  if (const std::size_t at = bytes.find('\0'); at != std::string_view::npos)
    return fmt::format("binary (byte {} is 0)", at);
  return std::string(is_json_line(bytes) ? json_lines_kind : "");
}

void check_is_text(const std::filesystem::path& path, std::string_view first_bytes) {
  const std::string kind = text_kind(first_bytes);
  if (kind.empty()) return;
  const std::string hint = kind == json_lines_kind ? "alpa-train convert takes the text out of it"
                           : kind == "a gzip file" ? "alpa-train convert uncompresses it"
                                                   : "make text of it, or tokens as /tokens of an HDF5 file";
  throw Error(ErrorKind::input, fmt::format("'{}' is not text: it seems to be {}", path.string(), kind),
              hint + "; alpa-train convert --from text takes the bytes of any file as they are");
}

std::unique_ptr<TokenSource> open_text_tokens(InputFile file) {
  const std::int64_t bytes = file.bytes();
  return std::make_unique<PackedTokens>(std::move(file), PackedType::u8, 0, bytes, "text");
}

}  // namespace alpa
