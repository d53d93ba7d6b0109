#pragma once
#include <string>

#include "libalpa/program/program.h"

namespace alpa {

/// A program as text: transfers, and for each stage its buffers (name, tile, layout, where they lie in the
/// arena), the instructions of its segments and its schedule. %12 is buffer 12 of the stage. Whatever a
/// run acts on is in it.
///
///     stage 1 on mesh 2 from device 2, 2 slots, arena of 81920 bytes
///       %0 state head.table f32[32x16] S0R, 2048 bytes at 0
///       forward
///         receive 0 -> %3
///         einsum head.logits equation='b s d, v d -> b s v' %3 %0 -> %4
///         all-reduce axis 0 %4 -> %5 RRR
///       schedule F0 F1 B0 F2 B1 ... U
std::string program_text(const Program&, const Graph&);

}  // namespace alpa
