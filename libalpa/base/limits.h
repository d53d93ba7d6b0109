#pragma once
#include <cstdint>

namespace alpa {

// The most that files and command lines may ask for: far beyond what a machine or a model has, and small
// enough that no size made of them overflows.

/// Elements of a tensor, and of one of its dimensions: the logits of a batch of 16 million tokens over a
/// vocabulary of 256,000 just fit.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 42;

/// Ids of tokens or of classes: they are integers of 32 bits.
inline constexpr std::int64_t kMostIds = std::int64_t{1} << 31;

/// Samples of a step, tokens of a sample, steps of a run: a run sees fewer than 2^63 samples.
inline constexpr std::int64_t kMostSamples = 1'000'000'000, kMostSteps = 1'000'000'000;
inline constexpr std::int64_t kMostMicroBatches = 1 << 16;  // of a step; a program's order is unrolled

/// Of a cluster; the last of a mesh and of a plan too.
inline constexpr std::int64_t kMostNodes = 65'536, kMostDevicesPerNode = 1'024, kMostDevices = 262'144;

inline constexpr std::int64_t kMostChildren = 64;  // of a vertex; as many columns are kept of each

/// Of a model, each of which is a step of it.
inline constexpr std::int64_t kMostLayers = 100'000;

/// Of a process: OpenMP's record of many more would not fit on the stack.
inline constexpr std::int64_t kMostThreads = 1'024;
inline constexpr std::int64_t kMostRank = 4'096;  // of what a gradient is compressed to
inline constexpr std::int64_t kMostDelay = 16;    // steps; each has a gradient that is held back
inline constexpr std::int64_t kMostPadding =
    65'536;  // of the rows that a vocabulary is padded to multiples of

/// The largest decay or share that is below 1 in 32 bits too, with something left of the rest.
inline constexpr double kNearlyOne = 0.999999;

/// A number that 32-bit floats hold, with room for what is computed from it; and the least that differs from
/// 0.
inline constexpr double kMostNumber = 1e30, kLeastNumber = 1e-30;

}  // namespace alpa
