#pragma once
#include <string>
#include <vector>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/state_tiles.h"

namespace alpa {

/// A step on one rank.
struct RankRows {
  DeviceIndex rank{0};
  std::string host = {};  ///< "": not known
  std::vector<TimelineRow> rows;
};

const Instruction& instruction_of(const Program&, const TimelineRow&);

/// The ranks whose timelines are the meshes' (MeshProgram::fullest_coordinate), one of each mesh.
std::vector<DeviceIndex> fullest_ranks(const Program&);

/// The ranks that a trace shows: all with a mesh, in order; where these would have more rows than one looks
/// at, those of fullest_ranks().
std::vector<DeviceIndex> traced_ranks(const Program&);

/// The simulated step of these ranks.
std::vector<RankRows> simulated_ranks(const Program&, const CostModel&, const std::vector<DeviceIndex>&);

/// Measured by clocks of their own, brought together: the last sum over all ranks ends everywhere at once,
/// and the first row of all begins at 0.
void bring_together(std::vector<RankRows>&, const Program&);

}  // namespace alpa
