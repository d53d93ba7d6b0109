#pragma once
#include <string>

#include "libalpa/program/order/simulate.h"

namespace alpa {

/// What an instruction's cost is one of, see cluster/cost_kind.h. A collective that packs what it sends is of
/// the collective's kind.
std::string cost_kind(const Program&, const MeshProgram&, const Instruction&);

/// The standard deviation of a simulated step, in seconds, that the repetitions of its measurements make
/// likely: costs of one kind are off together, those of different kinds independently of each other. So it is
/// the root of the sum, over kinds, of the squares of what the deviations of that kind add up to along the
/// critical path. It knows nothing of what no measurement backs, nor of drift (cluster/noise.h). 0 where
/// nothing has a spread, as with the numbers of a cluster file. The timeline has its rows.
double step_error_s(const Program&, const Timeline&, const CostModel&);

/// The part of the time of a simulated step's operators, in [0, 1], that no measurement backs. The timeline
/// has its rows.
double estimated_share(const Program&, const Timeline&, const CostModel&);

/// Rows without a gap between them, from the end of the step back to its begin: each ends when the one before
/// it here starts. They are in the order of this walk, as indices.
std::vector<std::size_t> critical_path(const std::vector<TimelineRow>&);

}  // namespace alpa
