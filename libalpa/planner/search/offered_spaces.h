#pragma once
#include <vector>

#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/search/space_bounds.h"

namespace alpa {

/// What the options let searches choose from. Keeps references.
class OfferedSpaces {
 public:
  OfferedSpaces(const PlannerOptions& options, const Cluster& cluster)
      : options_(options), cluster_(cluster) {}

  /// On so many devices, cut between clusters of that model's layers. Throws Error(usage) where there are
  /// fewer layers than clusters asked for.
  void cut(const Graph&, int devices);

  SearchSpace one_stage() const;
  SearchSpace one_device_each() const;
  SearchSpace any_stages(const PlanSpace&) const;

  /// Selective recomputation may be had, but is first only tried on what is found without.
  bool leaves_selective_out() const;
  /// Of stages.
  std::size_t mesh_count(int axes) const;

 private:
  SearchSpace all() const;
  std::vector<LayerForm> layer_forms(bool is_selective_too) const;

  const PlannerOptions& options_;
  const Cluster& cluster_;
  SearchSpace allowed_;  ///< cuts of layers, and what constraints say
};

}  // namespace alpa
