#pragma once
#include <string>
#include <utility>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"

namespace alpa {

class SelectionCache;

/// What to look for.
struct SearchSpace {
  int devices = 1;
  int micro_batches = 1;
  std::string schedule = "1f1b";                 ///< or kAnySchedule, as of schedules_of
  std::vector<bool> rematerialize{false, true};  ///< what may be tried
  std::vector<int>
      cuts;  ///< where stages may begin and end, the first and last layer's ends among them; empty: anywhere
  std::vector<int> needed_cuts;  ///< stages begin there
  std::vector<std::pair<int, int>>
      apart;  ///< devices, the first before the second, that no stage has both of
  int least_stages = 1, most_stages = 1 << 20;
  bool single_devices = false;  ///< stages of one device only
  bool doubling_sizes = false;  ///< stages of several nodes have a power of two of them, or all
  double best_s = infinity;     ///< the least estimate of a plan that is known
  double cutoff_s = infinity;   ///< proposals whose estimate is that or more are not wanted
  double near = 1.03;           ///< proposals take no more than that many times the best of them
  int proposals = 0;            ///< as many, or the best for each number of stages
  double gap = 5e-3;            ///< of each stage; the plans that come out are solved again, to the end
  /// Work on stages that are solved exactly, in place of estimating them: their pairs of strategies.
  std::int64_t solved_cells = 1'000'000'000;
  std::int64_t effort = 100'000;         ///< on each
  std::int64_t most_cbc_cells = 60'000;  ///< likewise, as of SelectionOptions
  SelectionCache* cache = nullptr;       ///< likewise
  int threads = 1;
  std::string name = "search";  ///< its name on progress lines
};

/// The numbers of devices that a stage may have, and the meshes of those.
std::vector<int> stage_sizes(const SearchSpace&, const Cluster&);
std::vector<MeshShape> stage_meshes(const SearchSpace&, const Cluster&);

}  // namespace alpa
