#include "libalpa/dataset/graph_packing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

using Samples = std::span<const VertexGraph* const>;

/// How many there are together.
std::int32_t vertices_within(Samples samples, std::size_t rows) {
  std::size_t vertices = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    vertices += static_cast<std::size_t>(samples[i]->vertices());
    if (vertices > rows)
      throw Error(
          ErrorKind::input,
          fmt::format("the first {} of the {} samples of a group have {} vertices, the last of them {}, "
                      "and the group has room for {}",
                      i + 1, samples.size(), vertices, samples[i]->vertices(), rows),
          "more room (the model's rows), fewer samples in a group, or smaller graphs");
  }
  return static_cast<std::int32_t>(vertices);
}

/// Calls found(sample, number in the group of its first vertex).
template <class Found>
void for_each_sample(Samples samples, Found&& found) {
  std::int32_t begin = 0;
  for (const VertexGraph* const sample : samples) {
    found(*sample, begin);
    begin += sample->vertices();
  }
}

}  // namespace

int GraphPacker::pack(Samples samples, BatchingPolicy policy, int most_children, const PackedRows& rows) {
  const auto columns = static_cast<std::size_t>(most_children) + 1;
  assert(rows.labels.size() == rows.tokens.size() && rows.structure.size() == rows.tokens.size() * columns);
  const std::int32_t vertices = vertices_within(samples, rows.tokens.size());
  reserve(rows, policy);
  round_of_.resize(static_cast<std::size_t>(vertices));
  row_of_.resize(static_cast<std::size_t>(vertices));
  const int rounds = find_rounds(samples, policy);

  // Rows in the order of rounds; vertices of one keep theirs. `ends_` is first where each round begins.
  ends_.assign(static_cast<std::size_t>(rounds), 0);
  for (const std::int32_t round : round_of_) ++ends_[round];
  std::int32_t begin = 0;
  for (std::int32_t& end : ends_) begin += std::exchange(end, begin);
  for (std::int32_t vertex = 0; vertex < vertices; ++vertex) row_of_[vertex] = ends_[round_of_[vertex]]++;

  std::ranges::fill(rows.tokens.subspan(vertices), 0);
  std::ranges::fill(rows.labels.subspan(vertices), -1);
  std::ranges::fill(rows.structure, -1);
  for (std::size_t row = 0; row < rows.tokens.size(); ++row)
    rows.structure[(row + 1) * columns - 1] = row < ends_.size() ? ends_[row] : 0;
  for_each_sample(samples, [&](const VertexGraph& sample, std::int32_t first) {
    for (std::int32_t vertex = 0; vertex < sample.vertices(); ++vertex) {
      const std::int32_t row = row_of_[first + vertex];
      rows.tokens[row] = sample.tokens[vertex];
      rows.labels[row] = sample.labels[vertex];
      const auto children = sample.children_of(vertex);
      assert(std::ssize(children) <= most_children);
      for (std::size_t i = 0; i < children.size(); ++i)
        rows.structure[static_cast<std::size_t>(row) * columns + i] = row_of_[first + children[i]];
    }
  });
  return rounds;
}

/// Whatever the samples of later groups of as many rows are, there is room for them.
void GraphPacker::reserve(const PackedRows& rows, BatchingPolicy policy) {
  for (auto* scratch : {&round_of_, &row_of_, &ends_}) scratch->reserve(rows.tokens.size());
  if (policy != BatchingPolicy::agenda) return;
  for (auto* scratch : {&waits_for_, &parent_ends_, &ready_[0], &ready_[1], &taken_})
    scratch->reserve(rows.tokens.size());
  parents_.reserve(rows.structure.size());
}

int GraphPacker::find_rounds(Samples samples, BatchingPolicy policy) {
  if (policy == BatchingPolicy::agenda) return find_rounds_of_agenda(samples);
  int rounds = 0;
  for_each_sample(samples, [&](const VertexGraph& sample, std::int32_t first) {
    const auto of_sample = std::span(round_of_).subspan(first, static_cast<std::size_t>(sample.vertices()));
    const int height = find_heights(sample, of_sample);
    switch (policy) {
      case BatchingPolicy::serial:
        for (std::int32_t& round : of_sample) round = rounds++;
        break;
      case BatchingPolicy::per_sample:
        for (std::int32_t& round : of_sample) round += rounds;
        rounds += height + 1;
        break;
      case BatchingPolicy::frontier:
      case BatchingPolicy::agenda:
      case BatchingPolicy::padded:
        rounds = std::max(rounds, height + 1);
    }
  });
  return rounds;
}

/// DyNet's strategy 1: of the signatures of which there are vertices whose operands are known, all vertices
/// of the one with the least average depth, a depth being the distance from what has no operands, averaged
/// over all vertices of the signature, known or not. Here the vertices without children, of depth 0, are all
/// ready at the beginning and go first, then all that are ready, again and again: with one function for all
/// vertices this comes to the rounds of the frontier, and to others only where functions differ.
int GraphPacker::find_rounds_of_agenda(Samples samples) {
  find_parents(samples);
  double depths[2] = {}, counts[2] = {};
  for (std::vector<std::int32_t>& ready : ready_) ready.clear();
  const auto signature = [&](const VertexGraph& sample, std::int32_t vertex) {
    return sample.children_of(vertex).empty() ? 0 : 1;
  };
  for_each_sample(samples, [&](const VertexGraph& sample, std::int32_t first) {
    // Depths, until rounds take their place.
    find_heights(sample, std::span(round_of_).subspan(first, static_cast<std::size_t>(sample.vertices())));
    for (std::int32_t vertex = 0; vertex < sample.vertices(); ++vertex) {
      const int kind = signature(sample, vertex);
      depths[kind] += round_of_[first + vertex];
      counts[kind] += 1;
      if (kind == 0) ready_[0].push_back(first + vertex);
    }
  });
  int rounds = 0;
  while (!ready_[0].empty() || !ready_[1].empty()) {
    const auto average = [&](int kind) {
      return ready_[kind].empty() ? infinity : depths[kind] / counts[kind];
    };
    taken_.clear();
    taken_.swap(ready_[average(0) <= average(1) ? 0 : 1]);
    for (const std::int32_t vertex : taken_) {
      round_of_[vertex] = rounds;
      const std::int32_t begin = vertex == 0 ? 0 : parent_ends_[vertex - 1];
      for (std::int32_t i = begin; i < parent_ends_[vertex]; ++i)
        if (--waits_for_[parents_[i]] == 0) ready_[1].push_back(parents_[i]);  // who waits has children
    }
    ++rounds;
  }
  return rounds;
}

void GraphPacker::find_parents(Samples samples) {
  waits_for_.resize(round_of_.size());
  parent_ends_.assign(round_of_.size(), 0);
  for_each_sample(samples, [&](const VertexGraph& sample, std::int32_t first) {
    for (std::int32_t vertex = 0; vertex < sample.vertices(); ++vertex)
      waits_for_[first + vertex] = static_cast<std::int32_t>(sample.children_of(vertex).size());
    for (const std::int32_t child : sample.children) ++parent_ends_[first + child];
  });
  std::int32_t begin = 0;
  for (std::int32_t& end : parent_ends_) begin += std::exchange(end, begin);
  parents_.resize(static_cast<std::size_t>(begin));
  for_each_sample(samples, [&](const VertexGraph& sample, std::int32_t first) {
    for (std::int32_t vertex = 0; vertex < sample.vertices(); ++vertex)
      for (const std::int32_t child : sample.children_of(vertex))
        parents_[parent_ends_[first + child]++] = first + vertex;
  });
}

}  // namespace alpa
