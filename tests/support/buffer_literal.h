#pragma once
#include "libalpa/program/program.h"

namespace alpa::testing_models {

/// 3_b: the buffer of that place in a program made by hand.
constexpr BufferIndex operator""_b(unsigned long long place) { return BufferIndex(place); }

}  // namespace alpa::testing_models
