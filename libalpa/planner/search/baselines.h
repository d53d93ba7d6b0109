#pragma once
#include <string>
#include <vector>

#include "libalpa/planner/planner_options.h"

namespace alpa {

/// Methods that are no search over both kinds of parallelism: "serial", "zero-1" ... (planner_methods()).
std::vector<std::string> baseline_names();

/// Data parallelism in which a gradient may be made of factors that are gathered.
inline constexpr const char* kFactorsMethod = "poseidon";
inline constexpr const char* kRowsMethod = "parallax";

/// Whether devices get fewer bytes of the factors of some gradient, of all samples of the step, than of its
/// sum: (P - 1) / P of the factors', 2 (P - 1) / P of the sum's (Poseidon, ATC'17, algorithm 3). The graph is
/// that of one of so many micro-batches.
bool has_small_factors(const Graph&, int micro_batches, int devices);

/// Whether the options ask for a method, by itself or as a part of "auto".
bool is_wanted(const PlannerOptions&, const std::string& method);

/// What named methods stand for on this many devices. Layers are cut by equal work, but for equal-layer;
/// where nodes differ, by equal time. Of the options they have schedule and mesh axes; where "megatron" is
/// the method, its stages may share meshes. Keeps references to the graph and the cluster.
class Baselines {
 public:
  Baselines(const Graph&, int devices, const Cluster&, int micro_batches, const PlannerOptions&);

  /// Several where the method has free numbers (Megatron's data x tensor x pipeline); none where it does not
  /// apply (a batch that does not divide, fewer layers than stages).
  std::vector<PinnedPlan> of(const std::string& method) const;

  /// What such a plan takes at least, under each schedule that it may have, on devices that are as fast as
  /// their numbers say, all else left aside.
  double least_s(const PinnedPlan&, const Cluster&) const;

 private:
  std::vector<double> paces(int stages) const;
  std::vector<int> equal_time_ends(int stages) const;
  PinnedPlan pipeline(const std::string& method, const std::vector<int>& ends, const MeshShape&,
                      const std::vector<AxisRole>&, StateSharding) const;
  std::vector<PinnedPlan> megatron() const;
  std::vector<PinnedPlan> deepspeed_moe() const;
  std::vector<PinnedPlan> equal_layer() const;

  const Graph& graph_;
  const Cluster& cluster_;
  int devices_, micro_batches_, mesh_axes_;
  std::string schedule_;
  bool shares_meshes_;
  std::vector<double> layer_flops_;  ///< of forward and backward
};

}  // namespace alpa
