#pragma once
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "libalpa/planner/stage/stage_scope.h"

namespace alpa {

/// When a stage does what, in ticks: the forward of a micro-batch, its backward, the update. Of equal layers
/// the first has ticks, which are those of its copies too. Around the run of a node there are ticks for
/// bringing its operands to the layouts it takes, and its results to those they rest in.
class StageClock {
 public:
  explicit StageClock(const StageScope&);

  int end() const { return end_; }
  int begin(Phase segment) const { return begin_[static_cast<std::size_t>(segment)]; }

  /// An operand's value is brought into the layout from which all users of the segment start.
  int starts(NodeIndex node, Phase segment, int operand) const { return at(node, segment) + 2 * operand; }
  /// The operand is brought into the layout that the node takes.
  int converts(NodeIndex node, Phase segment, int operand) const {
    return at(node, segment) + 2 * operand + 1;
  }
  /// The kernel; where blocks go round, later rounds have the next tick.
  int runs(NodeIndex node, Phase segment) const;
  /// A result is brought to the layout of its segment, or straight to rest; then from there to rest.
  int settles(NodeIndex node, Phase segment, int result) const {
    return runs(node, segment) + 2 + 2 * result;
  }
  int rests(NodeIndex node, Phase segment, int result) const { return settles(node, segment, result) + 1; }
  int ends(NodeIndex node, Phase segment) const;

  /// The global norm takes the square of this operand of an update, which is then in the layout it takes.
  int measures(NodeIndex node, int operand) const { return measures_.at({node, operand}); }

  /// Its place among all runs of the segment, copies and all.
  int position(NodeIndex node, Phase segment) const { return in(position_, node, segment); }

  /// Of the runs of a layer, or of that whose copy it is; {0, 0} where it has none.
  std::pair<int, int> of_layer(int layer, Phase segment) const;

 private:
  void measure();
  using OfNodes = std::array<std::vector<int>, 3>;  ///< [segment][node]; -1: it does not run there
  static int in(const OfNodes& of, NodeIndex node, Phase segment) {
    return of[static_cast<std::size_t>(segment)].at(static_cast<std::size_t>(node));
  }
  int at(NodeIndex node, Phase segment) const { return in(at_, scope_.canonical_node(node), segment); }

  const StageScope& scope_;
  OfNodes at_, position_;
  std::map<std::pair<int, Phase>, std::pair<int, int>> of_layer_;  ///< canonical layer, segment
  std::map<std::pair<NodeIndex, int>, int> measures_;              ///< node, operand
  std::vector<int> begin_;                                         ///< [segment]
  int end_ = 0;
};

}  // namespace alpa
