#pragma once
#include "libalpa/program/program.h"

namespace alpa {

// 0_v, 1_n, 2_d, 3_m, 4_s, 5_b: a value or node of a graph, a device of a cluster, a mesh, stage or buffer of
// a plan or program.
constexpr ValueIndex operator""_v(unsigned long long place) { return ValueIndex(place); }
constexpr NodeIndex operator""_n(unsigned long long place) { return NodeIndex(place); }
constexpr DeviceIndex operator""_d(unsigned long long place) { return DeviceIndex(place); }
constexpr MeshIndex operator""_m(unsigned long long place) { return MeshIndex(place); }
constexpr StageIndex operator""_s(unsigned long long place) { return StageIndex(place); }
constexpr BufferIndex operator""_b(unsigned long long place) { return BufferIndex(place); }

}  // namespace alpa
