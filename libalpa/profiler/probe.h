#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/profile.h"
#include "libalpa/profiler/instrument.h"
#include "libalpa/profiler/machines.h"

namespace alpa {

/// What each rank can do.
struct RankRates {
  std::vector<double> f32_flops_per_s, bf16_flops_per_s, f16_flops_per_s, memory_bytes_per_s;  ///< [rank]
};

/// Times large matrix products, in f32, bf16 and f16, and a streaming operator, on all ranks at once. Where a
/// device cannot multiply bf16 or f16 its rate is 0. Throws Error(run_time) where one of the others fails.
RankRates probe_rates(OpCatalog, Instrument&);

/// The cluster as its medians, with the cost of launching an operator, the links from messages between pairs,
/// and what a large product takes longer beside sums over all ranks. Where there is no pair of that kind, a
/// link is that of the nearest kind there is (memory for a single device).
Cluster probe_cluster(const Machines&, const RankRates&, OpCatalog, Instrument&);

/// Whether a profile of one was measured on the other: device and numbers of nodes and devices.
bool same_machines(const Cluster&, const Machines&);

std::vector<NodeSample> node_samples(const Machines&, const RankRates&);

/// What is odd about each node: "computes more than 10 % below the median", likewise "streams"; "" where
/// nothing is.
std::vector<std::string> remarks_on(const std::vector<NodeSample>&);

/// "node  GFLOP/s f32  GFLOP/s bf16  GB/s", a line per node, the odd ones marked.
std::string node_table(const std::vector<NodeSample>&);

}  // namespace alpa
