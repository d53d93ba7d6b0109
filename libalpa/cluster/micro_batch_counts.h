#pragma once
#include <cstdint>
#include <vector>

namespace alpa {

/// Into how many micro-batches a step of `batch` samples (or groups of samples that belong together) may be
/// cut: 1, and from there always the least divisor of the batch that is twice as much or more, up to `most`;
/// {1, 2, 4, 8, 16, 48} for a batch of 48. A larger `most` only adds counts.
std::vector<int> micro_batch_counts(std::int64_t batch, std::int64_t most);

/// Profiles measure for no more than that many, which is enough to fill a pipeline of all devices.
inline int most_profiled_micro_batches(int devices) { return devices > 2 ? 4 * devices : 8; }

}  // namespace alpa
