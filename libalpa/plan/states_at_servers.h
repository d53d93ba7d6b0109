#pragma once
#include <string>

#include "libalpa/plan/placement.h"

namespace alpa {

/// The most steps that parameters may be old (Plan::staleness): servers and devices have as many messages.
inline constexpr int kMostStaleness = 16;

/// Why servers cannot hold the states of this plan; "" where they can: one stage on a mesh of one axis, whose
/// devices exchange nothing but gradients, and all updates are made by rows (plan/owned_updates.h) at the end
/// of the step.
std::string unfit_for_servers(const Placement&);

}  // namespace alpa
