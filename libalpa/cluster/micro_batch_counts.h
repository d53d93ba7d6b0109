#pragma once
#include <cstdint>
#include <vector>

namespace alpa {

/// Into how many micro-batches a step of `batch` samples (or groups of samples that belong together) may be
/// cut on so many devices: powers of two that divide the batch, up to four per device and at least up to 8;
/// {1, 2, 4, 8, 16} for a batch of 48 on 4 devices. Plans are searched over these, and profiles measure for
/// these, so that a plan asks for nothing that was not measured. More devices only add counts.
std::vector<int> micro_batch_counts(std::int64_t batch, int devices);

}  // namespace alpa
