#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "libalpa/base/log.h"
#include "libalpa/h5/provenance.h"

namespace alpa {

/// Writes the checkpoint whose weights are the mean of those of several checkpoints of one model: parameters,
/// f32 masters of those in bf16 or f16 (which are then the rounding of the master's mean), and running
/// averages of normalization. Added up in f64, one tensor in memory at a time. All else (the optimizer's
/// moments, step, samples) is that of `checkpoints[rest]`, so that a run may go on from it. Throws
/// Error(input) where a file is damaged, or where the weights of two differ in name or type, with a table.
void average_checkpoints(std::span<const std::filesystem::path> checkpoints, std::size_t rest,
                         const std::filesystem::path& out, const Provenance& provenance, Log& log);

}  // namespace alpa
