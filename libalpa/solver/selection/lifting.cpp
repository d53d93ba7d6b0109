#include "libalpa/solver/selection/lifting.h"

#include <algorithm>
#include <cassert>

namespace alpa {

void Lifting::keep(int node, std::vector<int> labels) {
  assert(std::is_sorted(labels.begin(), labels.end()));
  kept_.push_back(node);
  labels_.push_back(std::move(labels));
}

std::vector<int> Lifting::lift(const std::vector<int>& reduced_choice) const {
  assert(reduced_choice.size() == kept_.size());
  std::vector<int> choice(kept_.size() + decisions_.size(), -1);
  for (std::size_t k = 0; k < kept_.size(); ++k) choice[kept_[k]] = labels_[k][reduced_choice[k]];
  for (auto decision = decisions_.rbegin(); decision != decisions_.rend(); ++decision) {
    std::size_t cell = 0;
    for (std::size_t p = 0; p < decision->parents.size(); ++p) {
      const auto& labels = decision->parent_labels[p];
      const auto at = std::lower_bound(labels.begin(), labels.end(), choice[decision->parents[p]]);
      assert(at != labels.end() && *at == choice[decision->parents[p]]);
      cell = cell * labels.size() + static_cast<std::size_t>(at - labels.begin());
    }
    choice[decision->node] = decision->label[cell];
  }
  return choice;
}

std::vector<int> Lifting::project(const std::vector<int>& original_choice) const {
  std::vector<int> choice(kept_.size(), 0);
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const auto at = std::lower_bound(labels_[k].begin(), labels_[k].end(), original_choice[kept_[k]]);
    if (at != labels_[k].end() && *at == original_choice[kept_[k]])
      choice[k] = static_cast<int>(at - labels_[k].begin());
  }
  return choice;
}

}  // namespace alpa
