#pragma once
#include <cstdint>
#include <vector>

#include "libalpa/dataset/graph_source.h"

namespace alpa {

/// The heights of all samples, by which those of a step are sorted before they are cut into groups: graphs of
/// about one height come together, and a step takes fewer rounds. A step has the samples that it has anyhow,
/// so its loss stays the same.
class HeightOrder {
 public:
  explicit HeightOrder(GraphSource&);  ///< reads all samples

  /// Sorts samples, all of one step and a whole number of groups. Groups come in the order of their reversed
  /// bits, so that each half of a step, each quarter and so on has low and high ones: ranks and micro-batches
  /// take about as long. `scratch` is replaced, in its memory where that is enough.
  void arrange(std::vector<std::int64_t>& samples, std::int64_t group,
               std::vector<std::int64_t>& scratch) const;

  std::int64_t held_bytes() const { return std::ssize(heights_) * std::int64_t{sizeof(std::int32_t)}; }

 private:
  std::vector<std::int32_t> heights_;  ///< [sample]
};

}  // namespace alpa
