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

/// [rank] The cores of each rank of a node that no other rank uses, given those that each may run on. Ranks
/// that may run on the same ones share them out evenly, each with neighbours in the order of their places; a
/// rank that has cores to itself keeps all of them. Nothing where ranks are more than the cores they share,
/// or where what they may run on overlaps without being the same: who runs where is then up to the system.
std::vector<Cores> core_shares(const std::vector<Cores>& allowed,
                               const std::function<CorePlace(int core)>& place = core_place);

Cores cores_in(const cpu_set_t&);  ///< ascending

/// This thread, and all that it starts from now on, run on these alone. Where the system refuses they run
/// anywhere, as before.
void keep_to(const Cores&);

}  // namespace alpa
