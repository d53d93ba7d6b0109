#pragma once
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/model/model.h"

namespace alpa {

/// A model over graphs as it is planned for data that `--data` names (open_graphs): with the rounds that
/// groups of its samples have, under the batching policy that the model file names, or under each of those
/// that may be the fastest. Throws Error(input) where it is no model over graphs, or the data has more
/// vertices than there is room for.
std::vector<ModelDefinition> forms_for_data(const ModelDefinition&, const std::string& data);

/// That whose rounds take the least time on one device.
ModelDefinition fastest_form(std::vector<ModelDefinition>, const CostModel&, Log&);

}  // namespace alpa
