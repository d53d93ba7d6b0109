#pragma once
#include "libalpa/base/bfloat16.h"

using __nv_bfloat16 = alpa::Bfloat16;

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline float __bfloat162float(__nv_bfloat16 value) { return alpa::to_float(value); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return alpa::to_bfloat16(value); }
