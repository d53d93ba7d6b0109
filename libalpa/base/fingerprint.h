#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace alpa {

/// 128-bit XXH3 digest of `bytes` as 32 hexadecimal digits. Names what a file was made from; it
/// guards against mix-ups, not against malice.
std::string fingerprint(std::string_view bytes);

/// 128 bits that stand for what they were made from, as a key.
struct Fingerprint {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Fingerprint&) const = default;
};

/// 32 hexadecimal digits, and the other way; throws std::invalid_argument for other texts.
std::string fingerprint_text(const Fingerprint&);
Fingerprint fingerprint_of_text(std::string_view);

/// The 128-bit XXH3 digest of values that are added one after another, bit for bit: 0.0 and -0.0 differ.
class RunningFingerprint {
 public:
  RunningFingerprint();
  ~RunningFingerprint();
  RunningFingerprint(const RunningFingerprint&) = delete;
  RunningFingerprint& operator=(const RunningFingerprint&) = delete;

  template <class Number>
  requires std::is_arithmetic_v<Number>
  void add(Number value) { add_bytes(&value, sizeof value); }
  /// With its length, so that neighbouring lists do not run together.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void add(const std::vector<Number>& values) {
    add(values.size());
    add_bytes(values.data(), values.size() * sizeof(Number));
  }

  Fingerprint value() const;

 private:
  void add_bytes(const void* bytes, std::size_t count);

  struct State;
  std::unique_ptr<State> state_;
};

/// 64-bit XXH3 digest, for keys of random streams and structural hashes.
std::uint64_t hash64(std::string_view bytes);

}  // namespace alpa
