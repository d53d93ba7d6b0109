#pragma once
#include "libalpa/base/float16.h"

using __half = alpa::Float16;

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline float __half2float(__half value) { return alpa::to_float(value); }
inline __half __float2half_rn(float value) { return alpa::to_float16(value); }
