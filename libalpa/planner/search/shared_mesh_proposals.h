#pragma once
#include <vector>

#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/search_space.h"

namespace alpa {

/// Pipelines on equal meshes, each of which has two, four ... stages: for every schedule of such, every
/// number of meshes that are as large, and every shape of them, all layers run in the way that is the fastest
/// of those that memory allows, and cut so that by estimates (shared_pipeline_seconds) it is as fast as can
/// be. Those below `most_s`, the fastest first, their stages not solved yet.
std::vector<Proposal> shared_mesh_proposals(const SearchSpace&, const StageSpans&, const StageModes&,
                                            const Cluster&, double most_s);

}  // namespace alpa
