#pragma once
#include <string>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/planner/planner_options.h"

namespace alpa {

/// What to look for, and with what effort.
struct SearchSpace : StageEffort {
  int devices = 1;
  int micro_batches = 1;
  std::string schedule = "1f1b";  ///< or kAnySchedule, as of schedules_of
  std::vector<LayerForm> rematerialize{std::nullopt, RecomputeForm::full};  ///< what may be tried
  std::vector<int>
      cuts;  ///< where stages may begin and end, the first and last layer's ends among them; empty: anywhere
  std::vector<int> needed_cuts;  ///< stages begin there
  std::vector<std::pair<int, int>>
      apart;  ///< devices, the first before the second, that no stage has both of
  int least_stages = 1, most_stages = 1 << 20;
  bool single_devices = false;      ///< stages of one device only
  double best_s = infinity;         ///< the least estimate of a plan that is known
  double best_step_s = infinity;    ///< its step; what takes as long under any schedule is not wanted
  double cutoff_s = infinity;       ///< proposals whose estimate is that or more are not wanted
  double gap = 5e-3;                ///< of each stage; the plans that come out are solved again, to the end
  SelectionCache* cache = nullptr;  ///< as of SelectionOptions
  int threads = 1;
  std::string name = "search";  ///< its name on progress lines
};

/// The numbers of devices that a stage may have, and the meshes of those.
std::vector<int> stage_sizes(const SearchSpace&, const Cluster&);
std::vector<MeshShape> stage_meshes(const SearchSpace&, const Cluster&);

}  // namespace alpa
