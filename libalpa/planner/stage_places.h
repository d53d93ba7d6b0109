#pragma once
#include <array>
#include <vector>

#include "libalpa/cluster/cluster.h"
#include "libalpa/planner/stage/stage_request.h"

namespace alpa {

/// Gives stages their devices, so that one within a node stays in it, in the order of the pipeline: each
/// begins at a multiple of its size, in the smallest gap that it fits into, those of several nodes at a node.
/// Small ones lie otherwise where fewer neighbours are apart then: where a stage would have devices of two
/// nodes in that order. Stages come to know whether their neighbours are on other nodes. (Sizes of
/// submesh_sizes leave no gap that a later stage does not fill; where others do, the largest come first, one
/// after another.) Where nodes
/// differ, each stage lies on one part if all find room so, in the order of the pipeline or the largest
/// first. `mesh_of_stage`: where several stages have the same devices; else empty.
void place_stages(std::vector<StageRequest>&, const Cluster&, const std::vector<int>& mesh_of_stage = {});

/// All that there are.
inline constexpr std::array<StageSides, 4> kEverySides{
    {{false, false}, {false, true}, {true, false}, {true, true}}};

/// Something of a stage for wherever its neighbours may lie.
template <class T>
class BySides {
 public:
  T& operator[](const StageSides& sides) { return all_[place(sides)]; }
  const T& operator[](const StageSides& sides) const { return all_[place(sides)]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  static std::size_t place(const StageSides& sides) {
    return (sides.before_is_apart ? 2u : 0u) + (sides.after_is_apart ? 1u : 0u);
  }
  std::array<T, kEverySides.size()> all_{};
};

/// Where a stage's neighbours lie, as far as it can be known from how many devices come before it.
class StagePlaces {
 public:
  StagePlaces(int devices, int devices_per_node)
      : devices_(devices),
        devices_per_node_(devices_per_node),
        whole_nodes_(static_cast<std::size_t>(devices) + 1, false) {
    for (int whole = 0; whole <= devices && devices > devices_per_node; whole += devices_per_node)
      whole_nodes_[whole] = true;
  }

  int devices() const { return devices_; }

  /// What to expect where it cannot be known: a stage that would have devices of two nodes, were they given
  /// out in the order of the pipeline, is apart from its neighbours. (Somewhere along the pipeline that costs
  /// as much: one border more than if the node had ended there.)
  StagePlaces likely() const {
    StagePlaces likely = *this;
    likely.straddlers_are_apart_ = true;
    return likely;
  }

  /// Of a stage on so many devices with `left` devices for it and all behind it. Where that says that they
  /// are apart, they are; where it does not, they are on one node if place_stages leaves no gaps.
  StageSides sides(int size, int left) const {
    const int before = devices_ - left;
    const bool straddles = straddlers_are_apart_ && has_nodes() && !whole_nodes_[size] &&
                           before / devices_per_node_ != (before + size - 1) / devices_per_node_;
    return {before > 0 && (straddles || is_apart(size, before)),
            before + size < devices_ && (straddles || is_apart(size, before + size))};
  }
  /// All that there are of such stages, likely ones too, which may be the first or the last of their
  /// pipeline.
  std::vector<StageSides> all_sides(int size, bool is_first, bool is_last) const;

 private:
  bool has_nodes() const { return whole_nodes_[0]; }
  /// From the stage on the other side of the border that has so many devices before it.
  bool is_apart(int size, int border) const { return whole_nodes_[size] || whole_nodes_[border]; }

  int devices_, devices_per_node_;
  bool straddlers_are_apart_ = false;
  std::vector<char> whole_nodes_;  ///< [devices] whether they are; false where all are on one node
};

}  // namespace alpa
