#pragma once
#include <set>

#include "libalpa/model/definition.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// Notes every name that means nothing or too much: unknown operators, settings, parameters, values and
/// numbers, wrong counts of operands and results, values that nothing uses, blocks that contain themselves.
/// What stands in `unsound` has been complained about and is passed over; blocks that are missing have been
/// reported.
void check_names(const ModelDefinition&, const std::set<SourceLocation>& unsound, ModelFaults&);

}  // namespace alpa
