#pragma once
#include <sched.h>

#include <functional>
#include <utility>
#include <vector>

namespace alpa {

/// Cores as the system numbers them; of a processor with several threads to a core each of these is one.
using Cores = std::vector<int>;

/// Where a core of the system is: its socket, and the core of that.
using CorePlace = std::pair<int, int>;
CorePlace core_place(int core);  ///< by sysfs; without it each is a core by itself

/// What a rank of a node has of the cores that it and others may run on.
struct CoreShare {
  Cores own;      ///< that no other rank uses; nothing where who runs where is up to the system
  int least = 0;  ///< cores of the rank of the node that has the fewest
};

/// The share of one rank, given those that each rank of the node may run on. Ranks that may run on the same
/// ones share them out evenly, each with neighbours in the order of their places; a rank that has cores to
/// itself keeps all of them. Ranks have nothing where they are more than the cores they share, or where what
/// they may run on overlaps with others' without being the same.
CoreShare core_share(const std::vector<Cores>& allowed, int rank,
                     const std::function<CorePlace(int core)>& place = core_place);

Cores cores_in(const cpu_set_t&);  ///< ascending

/// This thread, and all that it starts from now on, run on these alone. Where the system refuses they run
/// anywhere, as before.
void keep_to(const Cores&);

}  // namespace alpa
