#pragma once
#include <span>
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// The devices that this one sends messages to in a step of any of these programs of one plan, ascending: by
/// that channel of StageTransfer::channel, those of rings (Shift) by channel 0.
std::vector<int> receivers_of(std::span<const Program* const>, DeviceIndex, int channel);

}  // namespace alpa
