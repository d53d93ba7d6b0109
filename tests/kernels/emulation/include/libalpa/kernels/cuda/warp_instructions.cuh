#pragma once
#include <cstdint>
#include <cstring>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/float16.h"
#include "tests/kernels/emulation/emulated_grid.h"

namespace alpa {

// The instructions of libalpa/kernels/cuda/warp_instructions.cuh, element by element.

struct MatrixPart {
  unsigned pair[4];
};

/// Element (row, column) of matrix m, where each lane gives the address of a row.
template <bool kTransposed = false>
MatrixPart load_matrices(const void* row) {
  using emulation::own_lane;
  const emulation::OfLanes<const void*> rows(row);
  MatrixPart part{};
  for (unsigned m = 0; m < 4; ++m)
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned r = own_lane() / 4, c = own_lane() % 4 * 2 + i;
      const auto* of = static_cast<const std::uint16_t*>(rows[m * 8 + (kTransposed ? c : r)]);
      part.pair[m] |= static_cast<unsigned>(of[kTransposed ? r : c]) << (16 * i);
    }
  return part;
}

template <class T>
void add_product(float (&sums)[4], const MatrixPart& a, unsigned b0, unsigned b1) {
  struct Operands {
    float a[4][2], b[2][2];  // the pairs of each matrix
  };
  Operands own{};
  const auto element = [](unsigned pair, unsigned i) {
    return to_float(T{static_cast<std::uint16_t>(pair >> (16 * i))});
  };
  for (unsigned i = 0; i < 2; ++i) {
    for (unsigned m = 0; m < 4; ++m) own.a[m][i] = element(a.pair[m], i);
    own.b[0][i] = element(b0, i);
    own.b[1][i] = element(b1, i);
  }
  const emulation::OfLanes<Operands> operands(own);
  const unsigned row = emulation::own_lane() / 4, column = emulation::own_lane() % 4 * 2;
  for (unsigned k = 0; k < 16; ++k) {
    const auto& left = operands[row * 4 + k % 8 / 2].a;
    for (unsigned c = 0; c < 4; ++c) {
      const auto& right = operands[(column + c % 2) * 4 + k % 8 / 2].b;
      sums[c] += left[k / 8 * 2 + c / 2][k % 2] * right[k / 8][k % 2];
    }
  }
}

// Copies are done as soon as they begin where threads run in ascending order, else as late as what waits for
// them allows: kernels whose results depend on that lack a wait.

inline void copy_async(void* shared, const void* global, bool exists) {
  const auto copy = [=] {
    if (exists)
      std::memcpy(shared, global, 16);
    else
      std::memset(shared, 0, 16);
  };
  if (emulation::order == emulation::Order::ascending) return copy();
  emulation::own_copies().back().push_back(copy);
}
inline void close_copies() { emulation::own_copies().emplace_back(); }
template <int kOpen>
void wait_for_copies() {
  auto& groups = emulation::own_copies();  // the last is open still
  for (; groups.size() > kOpen + 1; groups.pop_front())
    for (const auto& copy : groups.front()) copy();
}

}  // namespace alpa
