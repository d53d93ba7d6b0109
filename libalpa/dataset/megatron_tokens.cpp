#include <fmt/core.h>

#include <cstring>

#include "libalpa/base/error.h"
#include "libalpa/dataset/token_formats.h"

// Megatron keeps tokens in a .bin, documents one after another, and their lengths in an .idx: a magic of 9
// bytes, the version (8 bytes), a code for the type of tokens (1), the numbers of sequences and of document
// ends (8 each), then per sequence its length (4) and its place in the .bin in bytes (8), and the document
// ends (8 each). Documents are read as one row.

namespace alpa {
namespace {

constexpr std::string_view magic("MMIDIDX\0\0", 9);
constexpr std::int64_t index_header_bytes = 9 + 8 + 1 + 8 + 8;

template <class Value>
Value value_at(const InputFile& file, std::int64_t offset) {
  Value value{};
  file.read(offset, &value, sizeof value);
  return value;
}

PackedType type_of_code(int code, const std::string& name) {
  switch (code) {
    case 1:
      return PackedType::u8;
    case 2:
      return PackedType::i8;
    case 3:
      return PackedType::i16;
    case 4:
      return PackedType::i32;
    case 5:
      return PackedType::i64;
    case 8:
      return PackedType::u16;
    default:
      throw Error(ErrorKind::input,
                  fmt::format("'{}' has type code {}, which is none of Megatron's integer types", name, code),
                  "make the data again with token ids as integers");
  }
}

Error damaged(const InputFile& index, const std::string& why) {
  return Error(ErrorKind::input,
               fmt::format("'{}' is truncated, damaged, or not the index of that .bin: {}",
                           index.path().string(), why),
               "copy or make both files again");
}

}  // namespace

bool is_megatron_index(std::string_view first_bytes) { return first_bytes.starts_with(magic); }

std::unique_ptr<TokenSource> open_megatron_tokens(const std::filesystem::path& index_path,
                                                  const std::filesystem::path& tokens_path) {
  const InputFile index(index_path);
  InputFile tokens(tokens_path);
  std::string found(magic.size(), ' ');
  if (index.bytes() < index_header_bytes) throw damaged(index, fmt::format("it has {} bytes", index.bytes()));
  index.read(0, found.data(), found.size());
  if (found != magic) throw damaged(index, "it does not begin as a Megatron index");
  const auto version = value_at<std::uint64_t>(index, 9);
  if (version != 1) throw damaged(index, fmt::format("version {} is not 1", version));
  const PackedType type = type_of_code(value_at<std::uint8_t>(index, 17), index_path.string());
  const auto sequences = value_at<std::int64_t>(index, 18), ends = value_at<std::int64_t>(index, 26);
  const std::int64_t room = (index.bytes() - index_header_bytes) / 8;
  if (sequences < 1 || ends < 0 || sequences > room || ends > room ||
      index_header_bytes + sequences * 12 + ends * 8 > index.bytes())
    throw damaged(index, fmt::format("{} bytes do not hold {} sequences and {} document ends", index.bytes(),
                                     sequences, ends));
  const auto last_length = value_at<std::int32_t>(index, index_header_bytes + (sequences - 1) * 4);
  const auto last_place =
      value_at<std::int64_t>(index, index_header_bytes + sequences * 4 + (sequences - 1) * 8);
  const std::int64_t width = packed_bytes(type);
  if (last_length < 0 || last_place < 0 || last_place > tokens.bytes() ||
      last_place + last_length * width != tokens.bytes())
    throw damaged(
        index, fmt::format("its last sequence ({} tokens at byte {}) does not end with the {} bytes of '{}'",
                           last_length, last_place, tokens.bytes(), tokens_path.string()));
  const std::int64_t count = tokens.bytes() / width;
  return std::make_unique<PackedTokens>(std::move(tokens), type, 0, count, "Megatron tokens");
}

}  // namespace alpa
