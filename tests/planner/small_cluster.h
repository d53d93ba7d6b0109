#pragma once
#include "libalpa/cluster/cluster.h"

namespace alpa {

/// One node of that many devices, fast enough that both work and communication matter to the tiny models.
inline Cluster small_cluster(int devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.devices_per_node = devices;
  cluster.memory_bytes = 1 << 30;
  cluster.memory_bytes_per_s = 1e10;
  cluster.f32_flops_per_s = 1e11;
  cluster.bf16_flops_per_s = 2e11;
  cluster.launch_s = 1e-6;
  cluster.within_node = {1e-6, 1e10};
  cluster.between_nodes = {1e-5, 1e9};
  return cluster;
}

}  // namespace alpa
