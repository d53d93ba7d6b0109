#pragma once
#include <array>
#include <cstdint>

namespace alpa {

/// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): four 32-bit
/// numbers that depend on nothing but a key and a counter. Everything random in training is drawn from
/// it at *logical* coordinates (parameter and global element, or step, sample and element), so that a
/// value is the same on whatever rank computes it. Constant expressions, so that device code may call them
/// (nvcc --expt-relaxed-constexpr).
struct PhiloxBlock {
  std::uint32_t word[4];
};

constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(counter_low),
                c1 = static_cast<std::uint32_t>(counter_low >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high),
                c3 = static_cast<std::uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Uniform in [0, 1), 24 bits.
constexpr float philox_uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// A draw in [0, 1) for element `index` of stream (key, high): element i is word i%4 of block i/4.
constexpr float philox_uniform_at(std::uint64_t key, std::uint64_t high, std::uint64_t index) {
  return philox_uniform(philox(key, high, index / 4).word[index % 4]);
}

/// The key of one stream of draws among the many of a run (SplitMix64's finalizer over both numbers).
constexpr std::uint64_t philox_key(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t key = seed + 0x9E3779B97F4A7C15ull * (stream + 1);
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
  return key ^ (key >> 31);
}

/// A standard normal from two words (Box-Muller). Host only: device and host libm differ in the last bit,
/// and initial weights are drawn on the host.
float philox_normal(std::uint32_t word0, std::uint32_t word1);

/// A standard normal draw for element `index`: element i uses words 2*(i%2) and 2*(i%2)+1 of block i/2.
float philox_normal_at(std::uint64_t key, std::uint64_t high, std::uint64_t index);

}  // namespace alpa
