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
  Shape origin;  ///< in the whole tensor
};

/// Where a device is in a program.
struct ProgramPlace {
  MeshIndex mesh;
  std::vector<int> coordinate;
};
ProgramPlace place_of(const Program&, DeviceIndex);

int device_count(const Program&);

/// The states that a device holds between steps, all it has of each in one tile. Where devices hold the same
/// elements, copies on other meshes among them, they are equal between steps.
std::vector<StateTile> state_tiles(const Graph&, const Program&, DeviceIndex);

}  // namespace alpa
