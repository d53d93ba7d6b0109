#pragma once
#include <vector>

#include "libalpa/program/program.h"

namespace alpa::testing_models {

/// First and last instruction of a segment, in the listed order, that touches a buffer; -1: none does.
struct Lifetime {
  int first = -1, last = -1;
};

inline std::vector<Lifetime> lifetimes(const MeshProgram& mesh,
                                       const std::vector<Instruction>& instructions) {
  std::vector<Lifetime> lives(mesh.buffers.size());
  for (int i = 0; i < static_cast<int>(instructions.size()); ++i)
    for (const auto& list : {buffers_read(instructions[static_cast<std::size_t>(i)]),
                             buffers_written(instructions[static_cast<std::size_t>(i)])})
      for (const int b : list) {
        Lifetime& life = lives[static_cast<std::size_t>(b)];
        if (life.first < 0) life.first = i;
        life.last = i;
      }
  return lives;
}

}  // namespace alpa::testing_models
