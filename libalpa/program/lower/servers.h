#pragma once
#include "libalpa/cluster/cluster.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Has the servers of the cluster help with the sums of the program's meshes that they are worth their while
/// for (Cluster::serves), and makes their own program. Nothing where there are none.
void add_servers(Program&, const Cluster&);

}  // namespace alpa
