#pragma once
#include "libalpa/plan/plan.h"
#include "libalpa/sampler/decoding_graph.h"

namespace alpa {

/// How a plan that a model was trained by runs its decoding: each node split as the one whose place it takes,
/// each value laid out likewise, but not along the sequence, and along the samples where there are as many;
/// stages, meshes and homes of states as they are. Passes check_plan(). Throws Error(input) for a plan whose
/// states are at servers.
Plan decoding_plan(const Plan& trained, const Graph& training, const DecodingGraph&);

/// By how many devices a plan shares out the samples, at most.
std::int64_t sample_shares(const Plan& trained, const Graph& training);

}  // namespace alpa
