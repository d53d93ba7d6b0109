#pragma once
#include <vector>

namespace alpa {

/// The way back from a reduced problem to the one it was made from.
///
/// Strategies are named by their index in the original problem ("label"). Every original node is either kept,
/// or decided by nodes that were still there when it was taken out.
class Lifting {
 public:
  /// A node that was taken out: its label follows from the labels of `parents`.
  struct Decision {
    int node = 0;
    std::vector<int> parents;
    std::vector<std::vector<int>> parent_labels;  ///< ascending, per parent
    std::vector<int> label;                       ///< row-major over the parents' positions in parent_labels
  };

  void decide(Decision decision) { decisions_.push_back(std::move(decision)); }

  /// Says that the next reduced node is original `node`, and what its strategies' labels are.
  void keep(int node, std::vector<int> labels);

  /// Original choice from the choice of the reduced problem.
  std::vector<int> lift(const std::vector<int>& reduced_choice) const;

  /// The reduced choice nearest to an original one: nodes whose label is gone get strategy 0.
  std::vector<int> project(const std::vector<int>& original_choice) const;

 private:
  std::vector<int> kept_;
  std::vector<std::vector<int>> labels_;
  std::vector<Decision> decisions_;
};

}  // namespace alpa
