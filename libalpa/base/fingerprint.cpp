#include "libalpa/base/fingerprint.h"

#define XXH_INLINE_ALL
#define XXH_NO_INLINE_HINTS 1  // its forced inlining goes through pointers, which -Og refuses
#include <fmt/core.h>
#include <xxhash.h>

#include <charconv>
#include <stdexcept>

namespace alpa {

std::string fingerprint(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fingerprint_text({hash.high64, hash.low64});
}

std::string fingerprint_text(const Fingerprint& value) {
  return fmt::format("{:016x}{:016x}", value.high, value.low);
}

Fingerprint fingerprint_of_text(std::string_view text) {
  Fingerprint value;
  const auto read = [&](std::size_t at, std::uint64_t& half) {
    const char *begin = text.data() + at, *end = begin + 16;
    const auto [stop, code] = std::from_chars(begin, end, half, 16);
    if (code != std::errc{} || stop != end) throw std::invalid_argument("not a fingerprint");
  };
  if (text.size() != 32) throw std::invalid_argument("not a fingerprint");
  read(0, value.high);
  read(16, value.low);
  return value;
}

struct RunningFingerprint::State {
  XXH3_state_t xxh3;
};

RunningFingerprint::RunningFingerprint() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
}
RunningFingerprint::~RunningFingerprint() = default;

void RunningFingerprint::add_bytes(const void* bytes, std::size_t count) {
  XXH3_128bits_update(&state_->xxh3, bytes, count);
}

Fingerprint RunningFingerprint::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.high64, hash.low64};
}

std::uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace alpa
