#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/planner/stage/stage_problem.h"

namespace alpa {

/// What a stage holds at once, beside what packing loses.
std::int64_t live_bytes(const StageRequest&, const StageSolution&);

/// [mesh] Its stages, once they are placed: those with the same first device.
std::vector<std::vector<std::size_t>> stages_on_meshes(const std::vector<StageRequest>&);

/// The memory of a mesh, of which each of its stages keeps a reserve for the others: what they hold while it
/// works.
struct MeshMemory {
  std::vector<StageRequest>& requests;
  const std::vector<StageSolution>& solutions;
  std::vector<std::size_t> stages;  ///< of the mesh
  std::int64_t limit;

  /// Those of several stages that do not fit beside their reserves get what they need of these; what all take
  /// together is seen once there is a program. False: one of them would not fit alone, or has that already;
  /// nothing is changed then.
  bool make_room() const;
  /// Whether a stage was found not to fit.
  bool is_short() const;

  /// Once their program took so much more than there is: another packing may lose more; where this one was
  /// not the first (`is_first`), as much. Several stages give up a part each.
  void leave(std::int64_t over, bool is_first) const;
};

}  // namespace alpa
