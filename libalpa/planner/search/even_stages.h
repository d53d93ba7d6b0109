#pragma once
#include <vector>

#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/search_space.h"

namespace alpa {

/// The stages of a proposal with the layers cut anew, between the cuts of the space, so that the slowest
/// stage is as fast as can be: for proposals that were found without regard to where their stages lie. A
/// layer is taken to cost what it does at least where it lies, and as many times more as the layers that the
/// stage has now, which are solved. The meshes must be in the book.
std::vector<StageRequest> evened_out(const PlanningGraph&, const CostTable&, const SearchSpace&,
                                     const Proposal&);

}  // namespace alpa
