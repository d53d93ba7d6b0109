#pragma once
#include "libalpa/program/program.h"

namespace alpa {

// 0_v, 1_n, 2_m, 3_s, 4_b: a value or node of a graph, a mesh, stage or buffer of a plan or program.
constexpr ValueIndex operator""_v(unsigned long long place) { return ValueIndex(place); }
constexpr NodeIndex operator""_n(unsigned long long place) { return NodeIndex(place); }
constexpr MeshIndex operator""_m(unsigned long long place) { return MeshIndex(place); }
constexpr StageIndex operator""_s(unsigned long long place) { return StageIndex(place); }
constexpr BufferIndex operator""_b(unsigned long long place) { return BufferIndex(place); }

}  // namespace alpa
