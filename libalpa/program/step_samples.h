#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// What one device takes of an input of samples in a step: of each micro-batch the rows [first_row, first_row
/// + rows). It is kept as one dense array, micro-batch after micro-batch.
struct InputSamples {
  std::int64_t micro_batches = 1, micro_batch_samples = 1;
  std::int64_t first_row = 0, rows = 0;
  std::int64_t row_bytes = 0;
  bool operator==(const InputSamples&) const = default;

  std::int64_t count() const { return micro_batches * rows; }
  std::int64_t micro_batch_bytes() const { return rows * row_bytes; }
  std::int64_t bytes() const { return micro_batches * micro_batch_bytes(); }

  /// Which sample of the step, from 0 on, row `row` of the array is.
  std::int64_t sample(std::int64_t row) const {
    return row / rows * micro_batch_samples + first_row + row % rows;
  }
};

/// Of each input of samples, in the graph's order.
using StepSamples = std::vector<InputSamples>;

/// What a device of a mesh takes, at most, in a step of any of these programs of one plan. A program loads
/// the whole micro-batch; where all that it does with that is to take slices of samples, the device's own
/// slice is all that it reads.
StepSamples step_samples(const Graph&, std::span<const Program* const>, MeshIndex,
                         const std::vector<int>& coordinate);

/// The same of each device of each mesh.
std::vector<StepSamples> step_samples_of_devices(const Graph&, std::span<const Program* const>);

}  // namespace alpa
