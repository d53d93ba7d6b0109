#pragma once
#include <span>
#include <utility>
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// Which devices send which others messages in a step of any of these programs of one plan, each (sender,
/// receiver) once and in order: by that channel (StageTransfer::channel); what goes round an axis (Shift) by
/// channel 0.
std::vector<std::pair<int, int>> message_pairs(std::span<const Program* const>, int channel);

}  // namespace alpa
