#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace alpa {

/// 128-bit XXH3 digest of `bytes` as 32 hexadecimal digits. Names what a file was made from; it
/// guards against mix-ups, not against malice.
std::string fingerprint(std::string_view bytes);

/// 64-bit XXH3 digest, for keys of random streams and structural hashes.
std::uint64_t hash64(std::string_view bytes);

}  // namespace alpa
