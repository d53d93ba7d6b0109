#pragma once
#include <map>
#include <string>

#include "libalpa/cluster/profile.h"

namespace alpa {

/// Multiplies all times of a kind (cluster/cost_kind.h), spreads too, by its factor; kinds without one stay.
/// Transfers and copies are also prices of the cluster's links, launches and memory, which are corrected with
/// them.
void correct_kinds(Profile&, const std::map<std::string, double>& factors);

/// Makes the sum of a few bytes over all devices of such a group take that long: the price of the smallest
/// all-reduce, which stays below that of the next larger one. Returns what it costs now; `seconds` where no
/// such all-reduce was measured.
double correct_smallest_sum(Profile&, GroupShape all_devices, double seconds);

/// Makes each call of an operator take that much longer.
void lengthen_calls(Profile&, double seconds);

}  // namespace alpa
