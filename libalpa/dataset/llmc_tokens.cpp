#include <fmt/core.h>

#include <array>
#include <cstring>

#include "libalpa/base/error.h"
#include "libalpa/dataset/token_formats.h"

// Files of llm.c: 256 integers of 32 bits (magic, version, number of tokens, zeros), then the tokens.

namespace alpa {
namespace {

constexpr std::int64_t llmc_header_bytes = std::int64_t{256} * 4;

struct Flavour {
  std::int32_t magic, version;
  PackedType type;
};
constexpr Flavour flavours[] = {{20240520, 1, PackedType::u16}, {20240801, 7, PackedType::u32}};

}  // namespace

bool is_llmc(std::string_view first_bytes) {
  std::int32_t magic = 0;
  if (first_bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, first_bytes.data(), sizeof magic);
  for (const Flavour& flavour : flavours)
    if (magic == flavour.magic) return true;
  return false;
}

std::unique_ptr<TokenSource> open_llmc_tokens(InputFile file) {
  const std::string name = file.path().string();
  if (file.bytes() < llmc_header_bytes)
    throw Error(ErrorKind::input,
                fmt::format("'{}' is truncated: {} bytes, and the header of llm.c has {}", name, file.bytes(),
                            llmc_header_bytes),
                "copy or make it again");
  std::array<std::int32_t, 3> header{};
  file.read(0, header.data(), sizeof header);
  for (const Flavour& flavour : flavours) {
    if (header[0] != flavour.magic) continue;
    if (header[1] != flavour.version)
      throw Error(ErrorKind::input,
                  fmt::format("'{}' is a token file of llm.c of version {}, but version {} is what is read",
                              name, header[1], flavour.version),
                  "make it again with a current llm.c");
    const std::int64_t bytes = llmc_header_bytes + header[2] * packed_bytes(flavour.type);
    if (header[2] < 0 || bytes != file.bytes())
      throw Error(
          ErrorKind::input,
          fmt::format("'{}' is truncated or damaged: its header promises {} tokens ({} bytes), but it has {} "
                      "bytes",
                      name, header[2], bytes, file.bytes()),
          "copy or make it again");
    return std::make_unique<PackedTokens>(std::move(file), flavour.type, llmc_header_bytes, header[2],
                                          "llm.c tokens");
  }
  throw Error(ErrorKind::input, fmt::format("'{}' is not a token file of llm.c", name));
}

}  // namespace alpa
