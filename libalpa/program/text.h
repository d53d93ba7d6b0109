#pragma once
#include <string>

#include "libalpa/program/program.h"

namespace alpa {

/// A program as text: transfers, and for each mesh its buffers (name, tile, layout, where they lie in the
/// arena), the instructions of its segments and its schedule. %12 is buffer 12 of the mesh. Whatever a
/// run acts on is in it.
///
///     mesh 2 from device 2, arena of 81920 bytes
///       %0 state head.table f32[32x16] S0R, 2048 bytes at 0
///       forward of stage 1
///         receive 0 -> %3 [from mesh 0]
///         einsum head.logits equation='b s d, v d -> b s v' %3 %0 -> %4
///         all-reduce axis 0 %4 -> %5 RRR [collectives of axis 0]
///       schedule F0 F1 B0 F2 B1 ... U
std::string program_text(const Program&, const Graph&);

/// Equal fingerprints mean equal texts.
std::string program_fingerprint(const Program&, const Graph&);

/// Throws Error(input) where the plan is lowered to another program than when it was made: by another
/// version, or because it was altered.
void check_program(const Plan&, const Graph&);

}  // namespace alpa
