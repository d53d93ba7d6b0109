#pragma once
#include "libalpa/cluster/cluster.h"
#include "libalpa/h5/file.h"

namespace alpa {

/// A cluster as the attributes of the group /cluster, in profiles and plans alike.
void write_cluster(H5Writer&, const Cluster&);

/// Throws Error(input) where a number is missing or makes no sense.
Cluster read_cluster(const H5Reader&);

}  // namespace alpa
