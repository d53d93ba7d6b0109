#pragma once
#include <cstdint>

#include "libalpa/solver/selection/selection_network.h"

namespace alpa {

/// Lower bound on the memory that any allowed choice needs at some time point, whatever it costs; 0 when
/// forbidden pairs leave no choice. `limit` is the capacity of all time points of the network; beyond it the
/// bound may be loose, never wrong.
///
/// The peak is at least any weighted mean over time. The weights follow the overloads that the leanest
/// choices leave (multiplicative weights: Plotkin, Shmoys and Tardos, 1995), a fixed number of steps.
std::int64_t least_peak_memory(const SelectionNetwork&, std::int64_t limit);

}  // namespace alpa
