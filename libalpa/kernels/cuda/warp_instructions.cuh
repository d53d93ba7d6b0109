#pragma once
#include <cuda_runtime.h>

#include <type_traits>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/float16.h"

namespace alpa {

// Instructions of a warp on matrices of 16-bit elements, and copies that go on by themselves: compute
// capability 8.0 and newer (PTX ISA, "mma", "ldmatrix", "cp.async"). The emulation has its own file of this
// name.

/// Four matrices of 8 x 8: lane i has the elements (i / 4, 2 * (i % 4)) and the one after it of each.
struct MatrixPart {
  unsigned pair[4];
};

/// From shared memory, each matrix as it is or transposed. Lane i has the address of row i % 8 of matrix i /
/// 8: eight elements, aligned to 16 bytes.
template <bool kTransposed = false>
__device__ MatrixPart load_matrices(const void* row) {
  MatrixPart part;
  unsigned(&p)[4] = part.pair;
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3])
                 : "r"(address)
                 : "memory");
  return part;
}

/// sums += a b. `a`: 16 x 16, as its matrices upper left, lower left, upper right, lower right. `b0`, `b1`:
/// the upper and the lower half of 16 x 8, transposed. Of `sums`, 16 x 8, lane i has row i / 4 (sums[0],
/// sums[1]) and row i / 4 + 8 (sums[2], sums[3]), columns 2 * (i % 4) and the one after it.
template <class T>
__device__ void add_product(float (&sums)[4], const MatrixPart& a, unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<T, Bfloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.pair[0]), "r"(a.pair[1]), "r"(a.pair[2]), "r"(a.pair[3]), "r"(b0), "r"(b1));
}

/// Begins to copy 16 bytes to shared memory, or zeros where there is nothing to copy; both addresses are
/// aligned to 16 bytes.
__device__ inline void copy_async(void* shared, const void* global, bool exists) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(global), "r"(exists ? 16 : 0)
               : "memory");
}

/// Closes a group of the copies begun since the last.
__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }

/// Waits until at most kOpen groups of this thread's copies are not done.
template <int kOpen>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kOpen) : "memory");
}

}  // namespace alpa
