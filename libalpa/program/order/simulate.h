#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/order/step_walk.h"
#include "libalpa/program/order/time_kind.h"
#include "libalpa/program/program.h"

namespace alpa {

/// One instruction's run on one mesh: a row of the planned (or measured) timeline.
struct TimelineRow {
  MeshIndex mesh{0};
  int segment = 0;  ///< index in MeshProgram::segments
  int micro_batch = -1;
  int instruction = 0;  ///< index in the segment
  int lane = 0;
  TimeKind kind = TimeKind::compute;
  double start_s = 0, duration_s = 0;
};

struct Timeline {
  std::vector<TimelineRow> rows;  ///< empty unless asked for
  Indexed<MeshIndex, MeshTime> meshes;
  Indexed<MeshIndex, HiddenTime> hidden;
  double step_s = 0;
};

/// The longest path through the program's own instructions with the model's costs: each starts when what it
/// waits for is done (program/order/dependences), a receive when its send is, a global sum when all meshes
/// are there. Transfers that take the same network interface in the same direction share it evenly.
/// Computation takes Cluster::overlap_slowdown times as long for as long as its mesh communicates beside it.
/// Of what devices own the rows are those of whom owns the most (MeshProgram::fullest_coordinate).
/// Where steps overlap each other (Program::defers_updates), the step is what one takes after others: rows
/// are of the last of them, and what goes on beside the next may end after step_s.
Timeline simulate(const Program&, const CostModel&, Overlap, bool keep_rows = false);
Timeline simulate(const Program&, const CostModel&, bool keep_rows = false);  ///< as the program says

/// Places of devices in their meshes.
using Coordinates = Indexed<MeshIndex, std::vector<int>>;
Coordinates fullest_coordinates(const Program&);  ///< MeshProgram::fullest_coordinate

/// The same with the rows of the devices there, which own other rows than the fullest do.
Timeline simulate(const Program&, const CostModel&, const Coordinates&);

/// What a plan's prediction says of each transfer.
std::vector<TransferPrediction> transfer_predictions(const Program&, const CostModel&);

/// What a plan's prediction says of each mesh.
Indexed<MeshIndex, MeshPrediction> mesh_predictions(const Program&, const Timeline&);

/// Seconds of every instruction of a segment, receives and sums without waiting.
std::vector<double> instruction_seconds(const Program&, const MeshProgram&, const Segment&, const CostModel&);

/// All devices of the meshes, which a global sum is over.
GroupShape all_devices(const Program&);

/// What a profile knows the kernel's measurement by.
std::string compute_signature(const MeshProgram&, const Compute&);

/// What a row is called in traces: "einsum block.0.mlp.up", "all-reduce 0", "send 3".
std::string instruction_label(const Instruction&, const Graph&);
TimeKind time_kind(const Instruction&);

}  // namespace alpa
