#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace alpa {

/// What may stay on a device, with others that are used at the same time.
struct CachedItem {
  int use = 0;  ///< whose items are on the device together
  std::int64_t bytes = 0;
};

/// [item] Whether it stays on the device, of whose memory `capacity` bytes are for items; the others come for
/// their use into a double buffer of the largest use that is left. GeePS's rule (EuroSys'16, 3.3; its
/// clientlib): all of them, where that fits. Else one of the largest use, as long as it fits beside a double
/// buffer of what is then the largest; else any that fits beside the double buffer as it is; until nothing
/// changes.
std::vector<bool> geeps_placement(std::span<const CachedItem> items, std::int64_t capacity);

}  // namespace alpa
