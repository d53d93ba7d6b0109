#include "libalpa/solver/selection/regions.h"

#include <algorithm>
#include <utility>

namespace alpa {
namespace {

constexpr int block_points = 64;  // one list of holders for each so many time points

bool holds_at(const SelectionNetwork::Node& node, int time) {
  const auto piece = std::partition_point(node.pieces.begin(), node.pieces.end(),
                                          [&](const auto& p) { return p.end <= time; });
  return piece != node.pieces.end() && piece->begin <= time;
}

}  // namespace

Regions::Regions(const SelectionNetwork& network, const std::vector<std::vector<int>>& incident)
    : network_(network),
      incident_(incident),
      holders_(network.capacity.size() / block_points + 1),
      is_member_(network.nodes.size(), 0) {
  for (int i = 0; i < std::ssize(network.nodes); ++i)
    for (const auto& piece : network.nodes[i].pieces)
      for (int block = piece.begin / block_points; block <= (piece.end - 1) / block_points; ++block)
        if (holders_[block].empty() || holders_[block].back() != i) holders_[block].push_back(i);
}

// Adds neighbours of members, the first members' first, each left out with some probability.
void Regions::spread(std::vector<int>& region, int size, double left_out, Dice& dice) {
  for (int i : region) is_member_[i] = 1;
  for (std::size_t head = 0; head < region.size() && std::ssize(region) < size; ++head)
    for (int e : incident_[region[head]]) {
      const int other = other_end(network_.edges[e], region[head]);
      // Leaving some neighbours out makes regions of all shapes.
      if (is_member_[other] || std::ssize(region) >= size || dice.uniform() < left_out) continue;
      is_member_[other] = 1;
      region.push_back(other);
    }
  for (int i : region) is_member_[i] = 0;
}

std::vector<int> Regions::connected(int size, Dice& dice) {
  std::vector<int> region{dice.below(static_cast<int>(network_.nodes.size()))};
  spread(region, size, dice.uniform() < 0.5 ? 0.1 : 0.4, dice);
  return region;
}

std::vector<int> Regions::crowded(int size, const std::vector<std::int64_t>& free, Dice& dice) {
  if (free.empty()) return connected(size, dice);
  const auto draw = [&] { return dice.below(static_cast<int>(free.size())); };
  int time = draw();
  constexpr int draws = 6;
  for (int k = 1; k < draws; ++k)
    if (const int other = draw(); free[other] < free[time]) time = other;
  std::vector<int> region;
  for (int i : holders_[time / block_points])
    if (holds_at(network_.nodes[i], time)) region.push_back(i);
  if (region.empty()) return connected(size, dice);
  const int seeds = std::min<int>(static_cast<int>(region.size()), std::max(2, size / (1 + dice.below(8))));
  for (int k = 0; k < seeds; ++k)
    std::swap(region[k], region[k + dice.below(static_cast<int>(region.size()) - k)]);
  region.resize(seeds);
  spread(region, size, 0.4, dice);
  return region;
}

}  // namespace alpa
