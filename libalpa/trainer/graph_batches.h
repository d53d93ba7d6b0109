#pragma once
#include <optional>
#include <vector>

#include "libalpa/dataset/graph_packing.h"
#include "libalpa/dataset/graph_source.h"
#include "libalpa/dataset/height_order.h"
#include "libalpa/trainer/batch_reader.h"

namespace alpa {

/// What a model over graphs takes, and for how much it has room.
struct GraphRoom {
  GraphLimits limits;
  std::int64_t group = 1;     ///< samples that are packed together
  std::int64_t vertices = 1;  ///< rows for each of them

  std::int64_t rows() const { return group * vertices; }
};

/// Inputs of graphs: tokens, labels and structure (ops/vertex.h), each row a vertex. A group of consecutive
/// samples of the step is packed into its rows round by round, the same whatever the plan.
class GraphBatches final : public BatchReader {
 public:
  /// `source` must outlive it. A run of so many steps, 0: as the options say. Throws Error(input) where
  /// samples that come together in the run, or in an evaluation, have more vertices than there is room for,
  /// or are to be padded and are no chains.
  GraphBatches(GraphSource& source, const SampleOrder& order, const GraphRoom&, const GraphBatching&,
               const TrainingOptions& options, std::int64_t steps);

  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override;

  /// Vertices with a label, at least 1.
  std::int64_t target_count(Split split, std::int64_t first_sample, std::int64_t samples) const override;

  void count_group_rows(Split split, std::int64_t first_sample, std::int64_t samples,
                        std::vector<std::int32_t>& into) const override;

  bool can_read_ahead() const override { return source_.can_read_ahead(); }
  std::int64_t held_bytes() const override;
  std::string description() const override;
  std::int64_t length() const override { return source_.samples(); }

 private:
  /// Samples of the data in the order in which groups are cut of them.
  struct Arranged {
    std::vector<std::int64_t> samples, scratch;
  };
  void arrange(Split split, std::int64_t first_sample, std::int64_t count, Arranged& into) const;
  struct GroupSize {
    std::int64_t rows = 0, largest_sample = 0;
  };
  GroupSize size_of(std::span<const std::int64_t> group) const;
  GroupSize most_of_run(std::int64_t samples, std::int64_t batch) const;
  void check_room(std::int64_t samples, std::int64_t batch) const;

  void pack(std::span<const std::int64_t> group);  ///< which is then at hand

  GraphSource& source_;
  GraphRoom room_;
  BatchingPolicy policy_;
  std::optional<HeightOrder> heights_;
  // One for each thread that asks.
  Arranged filled_;
  mutable Arranged counted_;
  // Of the group at hand.
  std::vector<VertexGraph> graphs_;
  std::vector<const VertexGraph*> packed_;
  GraphPacker packer_;
  std::vector<std::int32_t> tokens_, labels_, structure_;
};

}  // namespace alpa
