#pragma once
#include <set>
#include <string>

#include "libalpa/model/definition.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// Notes every name that means nothing or too much: unknown operators, settings, parameters, values and numbers, wrong
/// counts of operands and results, values that nothing uses, blocks that contain themselves. Blocks in `unsound` ("":
/// the layers) have been complained about and are passed over; blocks that are missing have been reported.
void check_names(const ModelDefinition&, const std::set<std::string>& unsound, ModelFaults&);

}  // namespace alpa
