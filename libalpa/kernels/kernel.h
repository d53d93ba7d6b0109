#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/device/device.h"
#include "libalpa/graph/op.h"

namespace alpa {

/// One rank's dense, row-major piece of a tensor.
struct Tile {
  void* data = nullptr;
  Shape origin;  ///< global index of its first element, per dimension, within the micro-batch's tensor; {}:
                 ///< zeros
  Shape whole;   ///< extents of that tensor; {}: the tile is all of it
};

/// Where in the training run a kernel is called; what random draws and sample indices depend on.
struct RunPoint {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_sample = 0;  ///< index within the step of sample 0 of this micro-batch
  bool trains = true;             ///< false: evaluates
  /// [group of samples within the step] How many of the rows of its vertices (graph/vertex_rows.h) are
  /// there; empty: all.
  std::span<const std::int32_t> group_rows = {};
};

/// What a kernel is prepared for: everything that does not change from call to call.
struct KernelShape {
  std::vector<TensorType> operands, results;  ///< of the local tiles
  Attributes attributes;
  std::int64_t alignment = kAlignment;  ///< of all tiles, in bytes: a power of two, and no more
};

/// An operator made ready for one shape on one device. Preparing may allocate and choose; running must not
/// allocate. Not shared between threads.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Queues the work. Tiles are in device memory in the order of KernelShape and do not overlap, except
  /// results that overwrite operands (OpDef::overwrites). `accumulate` adds to result 0 (only where
  /// OpDef::accumulates). `workspace` holds workspace_of(op, call) bytes.
  virtual void run(Stream&, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
                   bool accumulate, const RunPoint&) = 0;
};

/// An n-dimensional box inside a dense tensor.
struct Box {
  Shape tensor;  ///< extents of the whole dense tensor
  Shape origin;  ///< first element of the box
};

}  // namespace alpa
