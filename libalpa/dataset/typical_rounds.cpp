#include "libalpa/dataset/typical_rounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "libalpa/base/fingerprint.h"
#include "libalpa/base/philox.h"
#include "libalpa/dataset/height_order.h"
#include "libalpa/dataset/padded_chains.h"

namespace alpa {
namespace {

constexpr std::int64_t kGroups = 64;                ///< that are drawn at most
constexpr std::int64_t kVerticesDrawn = 1'000'000;  ///< no further group is drawn after so many

}  // namespace

std::vector<std::int64_t> typical_rounds(GraphSource& source, const DrawnSteps& drawn,
                                         const GraphBatching& batching) {
  const BatchingPolicy policy = batching.policy.value_or(BatchingPolicy::frontier);
  std::optional<HeightOrder> heights;
  if (batching.by_height) heights.emplace(source);
  GraphPacker packer;
  std::vector<VertexGraph> graphs(static_cast<std::size_t>(drawn.group));
  std::vector<const VertexGraph*> packed;
  for (const VertexGraph& graph : graphs) packed.push_back(&graph);
  std::vector<std::int32_t> tokens, labels, structure;
  std::vector<std::int64_t> samples, scratch;
  std::vector<double> rows_of;  ///< [round] of all groups
  std::int64_t groups = 0, rounds = 0, vertices = 0;
  const auto columns = static_cast<std::size_t>(drawn.children) + 1;
  std::uint64_t draws = 0;
  const auto add_group = [&](std::span<const std::int64_t> group) {
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < graphs.size(); ++i) source.read(group[i], graphs[i]);
    if (policy == BatchingPolicy::padded) pad_chains(graphs);
    for (const VertexGraph& graph : graphs) rows += graph.vertices();
    vertices += rows;
    tokens.resize(static_cast<std::size_t>(rows));
    labels.resize(static_cast<std::size_t>(rows));
    structure.resize(static_cast<std::size_t>(rows) * columns);
    const int count =
        packer.pack(packed, policy, static_cast<int>(drawn.children), {tokens, labels, structure});
    rounds += count;
    rows_of.resize(std::max(rows_of.size(), static_cast<std::size_t>(count)));
    std::int64_t begin = 0;
    for (std::size_t round = 0; round < static_cast<std::size_t>(count); ++round) {
      const std::int64_t end = structure[(round + 1) * columns - 1];
      rows_of[round] += static_cast<double>(end - begin);
      begin = end;
    }
    ++groups;
  };
  // Groups that are not sorted are like each other; of those that are, a whole step is typical.
  const std::int64_t of_step = heights ? drawn.samples : drawn.group;
  while (groups < kGroups && vertices < kVerticesDrawn) {
    samples.clear();
    for (std::int64_t i = 0; i < of_step; ++i) {
      const double draw = philox_uniform_at(philox_key(0, hash64("typical rounds")), 0, draws++);
      samples.push_back(static_cast<std::int64_t>(draw * static_cast<double>(source.samples())));
    }
    if (heights) heights->arrange(samples, drawn.group, scratch);
    for (std::int64_t group = 0; group < of_step; group += drawn.group)
      add_group(std::span(samples).subspan(group, drawn.group));
  }
  // The last rounds, which few groups have, are put to the others.
  const auto mean_rounds = static_cast<std::size_t>(
      std::max<std::int64_t>(1, std::llround(static_cast<double>(rounds) / static_cast<double>(groups))));
  const double left =
      std::accumulate(rows_of.begin() + static_cast<std::ptrdiff_t>(std::min(mean_rounds, rows_of.size())),
                      rows_of.end(), 0.0);
  rows_of.resize(mean_rounds);
  rows_of.back() += left;
  std::vector<std::int64_t> typical;
  double before = 0, so_far = 0;
  for (const double rows : rows_of) {
    so_far += rows / static_cast<double>(groups);
    typical.push_back(std::max<std::int64_t>(1, std::llround(so_far - before)));
    before += static_cast<double>(typical.back());
  }
  return typical;
}

}  // namespace alpa
