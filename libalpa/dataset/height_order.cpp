#include "libalpa/dataset/height_order.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace alpa {
namespace {

std::uint64_t reversed_bits(std::uint64_t number) {
  std::uint64_t reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= (number >> bit & 1) << (63 - bit);
  return reversed;
}

}  // namespace

HeightOrder::HeightOrder(GraphSource& source) {
  heights_.reserve(static_cast<std::size_t>(source.samples()));
  VertexGraph graph;
  std::vector<std::int32_t> heights;
  for (std::int64_t sample = 0; sample < source.samples(); ++sample) {
    source.read(sample, graph);
    heights.resize(static_cast<std::size_t>(graph.vertices()));
    heights_.push_back(find_heights(graph, heights));
  }
}

void HeightOrder::arrange(std::vector<std::int64_t>& samples, std::int64_t group,
                          std::vector<std::int64_t>& scratch) const {
  assert(std::ssize(samples) % group == 0);
  std::ranges::sort(samples, {}, [this](std::int64_t sample) {
    return std::pair(heights_[static_cast<std::size_t>(sample)], sample);
  });
  // First which group is where, then the samples.
  const std::int64_t groups = std::ssize(samples) / group;
  scratch.clear();
  for (std::int64_t place = 0; place < groups; ++place) scratch.push_back(place);
  std::ranges::sort(scratch, {}, [](std::int64_t place) { return reversed_bits(place); });
  scratch.resize(static_cast<std::size_t>(groups) + samples.size());
  for (std::int64_t sorted = 0; sorted < groups; ++sorted)
    std::copy_n(samples.begin() + sorted * group, group,
                scratch.begin() + groups + scratch[static_cast<std::size_t>(sorted)] * group);
  std::copy(scratch.begin() + groups, scratch.end(), samples.begin());
}

}  // namespace alpa
