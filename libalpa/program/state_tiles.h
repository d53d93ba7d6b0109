#pragma once
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/graph/graph.h"
#include "libalpa/program/program.h"

namespace alpa {

/// A device's tile of a state.
struct StateTile {
  StateIndex state;
  TensorType tile;
  Shape origin;          ///< in the whole tensor
  int term = 0;          ///< of a state that devices hold in terms (State::holds_terms)
  BufferIndex buffer;    ///< of its mesh
  bool is_copy = false;  ///< of what devices have whole: read from checkpoints, and not written there
};

/// Where a device is in a program.
struct ProgramPlace {
  MeshIndex mesh;  ///< -1: it is a server
  std::vector<int> coordinate;
};
ProgramPlace place_of(const Program&, DeviceIndex);

int device_count(const Program&);  ///< with servers

/// How many terms devices hold of each state: 1 but where State::holds_terms.
Indexed<StateIndex, int> state_terms(const Graph&, const Program&);

/// The states that a device holds between steps: all it has of each in one tile, or in one for each part of
/// which it is the owner. Where devices hold the same
/// elements of a term, copies on other meshes among them, they are equal between steps.
std::vector<StateTile> state_tiles(const Graph&, const Program&, DeviceIndex);

}  // namespace alpa
