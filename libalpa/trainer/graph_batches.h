#pragma once
#include <vector>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// For what a model over graphs has room.
struct GraphRoom {
  std::int64_t group = 1;     ///< samples that are packed together
  std::int64_t vertices = 1;  ///< rows for each of them
  std::int64_t children = 1;
};

/// Inputs of graphs: tokens, labels and structure (ops/vertex.h), each row a vertex. A group of consecutive
/// samples of the step is packed into its rows round by round, the same whatever the plan.
class GraphBatches final : public BatchReader {
 public:
  /// `source` must outlive it. Throws Error(input) where samples that come together in a run of so many, or
  /// in an evaluation, have more vertices than there is room for.
  GraphBatches(GraphSource& source, const SampleOrder& order, const GraphRoom&, BatchingPolicy,
               std::int64_t samples);

  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override;

  /// Vertices with a label, at least 1.
  std::int64_t target_count(Split split, std::int64_t first_sample, std::int64_t samples) const override;

  void count_group_rows(Split split, std::int64_t first_sample, std::int64_t samples,
                        std::vector<std::int32_t>& into) const override;

  bool can_read_ahead() const override { return source_.can_read_ahead(); }
  std::int64_t held_bytes() const override;
  std::string description() const override { return source_.description(); }
  std::int64_t length() const override { return source_.samples(); }

 private:
  void pack(Split split, std::int64_t first_sample);  ///< the group at hand

  GraphSource& source_;
  GraphRoom room_;
  BatchingPolicy policy_;
  // Of the group at hand.
  std::vector<VertexGraph> graphs_;
  std::vector<const VertexGraph*> packed_;
  GraphPacker packer_;
  std::vector<std::int32_t> tokens_, labels_, structure_;
};

}  // namespace alpa
