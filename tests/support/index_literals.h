#pragma once
#include "libalpa/program/program.h"

namespace alpa {

// 0_m, 1_s, 2_b: a mesh, stage or buffer of a plan or program made by hand.
constexpr MeshIndex operator""_m(unsigned long long place) { return MeshIndex(place); }
constexpr StageIndex operator""_s(unsigned long long place) { return StageIndex(place); }
constexpr BufferIndex operator""_b(unsigned long long place) { return BufferIndex(place); }

}  // namespace alpa
