#pragma once
#include <string>

#include "libalpa/program/program.h"

namespace alpa {

/// Throws Error(run_time): such a program is our own bug or an altered plan.
[[noreturn]] void refuse_program(MeshIndex, const std::string& what);

/// "instruction 12 of the backward of stage 1 of micro-batch 3"
std::string instruction_words(const MeshProgram&, const SegmentRun&, std::size_t instruction);

/// "buffer 7 (block.0.mlp.up)"
std::string buffer_words(const MeshProgram&, BufferIndex);

}  // namespace alpa
