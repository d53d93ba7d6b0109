#pragma once
#include <memory>
#include <span>
#include <vector>

#include "libalpa/base/batching_policy.h"
#include "libalpa/dataset/array_source.h"
#include "libalpa/dataset/graph_packing.h"
#include "libalpa/graph/graph.h"

namespace alpa {

/// The batch of a step of a tiny model, drawn, whatever its inputs are.
class TinyBatches {
 public:
  /// `batching` says how graphs are packed.
  TinyBatches(const Graph&, std::int64_t samples, BatchingPolicy batching);

  std::span<const std::span<const std::byte>> samples() const { return filled_; }

  /// Of models over graphs, how many rows of each group are there.
  std::span<const std::int32_t> group_rows() const { return group_rows_; }

  /// How many targets it has.
  float fill(int step) {
    return arrays_ ? fill_rows(step) : graphs_.empty() ? fill_tokens(step) : fill_graphs(step);
  }

 private:
  struct GraphInput {
    TensorType row;
    std::int64_t below;
  };

  float fill_graphs(int step);  ///< tokens, labels and structure
  float fill_rows(int step);
  float fill_tokens(int step);

  const std::int64_t count_;
  const BatchingPolicy batching_;
  std::vector<std::vector<std::byte>> batch_;
  std::vector<std::span<const std::byte>> filled_;
  std::unique_ptr<ArraySource> arrays_;
  std::vector<GraphInput> graphs_;
  GraphPacker packer_;
  std::vector<std::int32_t> group_rows_;
};

}  // namespace alpa
