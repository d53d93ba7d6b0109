#pragma once
#include <map>
#include <string>

#include "libalpa/cluster/profile.h"

namespace alpa {

/// The profile with all times of a kind (cluster/cost_kind.h) multiplied by its factor, spreads too, and
/// `call_gap_s` more for each call of an operator. Kinds without a factor stay. Transfers and copies are also
/// prices of the cluster's links, launches and memory, which are corrected with them.
Profile corrected_profile(Profile, const std::map<std::string, double>& factors, double call_gap_s);

}  // namespace alpa
