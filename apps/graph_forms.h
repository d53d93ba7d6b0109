#pragma once
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/model/model.h"

namespace alpa {

/// Of the option that names the data.
inline constexpr const char* kGraphDataHelp =
    "graphs that a model over graphs is to be trained on, as alpa-train takes them: operators are measured "
    "and priced for their sizes, and the plan has the batching policy that is the fastest for them";

/// A model over graphs as it is planned for data that `--data` names (open_graphs): with the rounds that
/// groups of its samples have, under the batching policy that the model file names, or under each of those
/// that may be the fastest, and with room for the largest samples that can come together where it does not
/// say for how many vertices. Throws Error(input) where it is no model over graphs, or the data has more
/// vertices than there is room for.
std::vector<ModelDefinition> forms_for_data(const ModelDefinition&, const std::string& data, Log&);

/// That whose rounds take the least time on one device.
ModelDefinition fastest_form(std::vector<ModelDefinition>, const CostModel&, Log&);

}  // namespace alpa
