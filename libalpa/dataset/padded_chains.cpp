#include "libalpa/dataset/padded_chains.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"

namespace alpa {

void check_chains(GraphSource& source) {
  VertexGraph graph;
  for (std::int64_t sample = 0; sample < source.samples(); ++sample) {
    source.read(sample, graph);
    for (std::int32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
      const std::span<const std::int32_t> children = graph.children_of(vertex);
      if (vertex == 0 ? children.empty() : children.size() == 1 && children[0] == vertex - 1) continue;
      throw Error(ErrorKind::input,
                  fmt::format("{}: sample {} is not a chain: vertex {} has {} children{}, expected {}",
                              source.description(), sample, vertex, children.size(),
                              children.size() == 1 ? fmt::format(" (vertex {})", children[0]) : "",
                              vertex == 0 ? "none" : fmt::format("vertex {} alone", vertex - 1)),
                  "another batching policy than padded");
    }
  }
}

void pad_chains(std::span<VertexGraph> chains) {
  std::int32_t longest = 0;
  for (const VertexGraph& chain : chains) longest = std::max(longest, chain.vertices());
  for (VertexGraph& chain : chains)
    while (chain.vertices() < longest) {
      const std::int32_t last = chain.vertices() - 1;
      chain.add(-1, -1, std::span(&last, 1));
    }
}

}  // namespace alpa
