#pragma once
#include <vector>

#include "libalpa/program/program.h"

namespace alpa::testing_models {

/// First and last instruction of a segment, in the listed order, that touches a buffer; -1: none does.
struct Lifetime {
  int first = -1, last = -1;
};

inline Indexed<BufferIndex, Lifetime> lifetimes(const MeshProgram& mesh,
                                                const std::vector<Instruction>& instructions) {
  Indexed<BufferIndex, Lifetime> lives(mesh.buffers.size());
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i)
    for (const auto& list : {buffers_read(instructions[i]), buffers_written(instructions[i])})
      for (const BufferIndex b : list) {
        Lifetime& life = lives[b];
        if (life.first < 0) life.first = i;
        life.last = i;
      }
  return lives;
}

}  // namespace alpa::testing_models
