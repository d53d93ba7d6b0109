#include "libalpa/calibration/corrections.h"

#include <algorithm>

#include "libalpa/cluster/cost_kind.h"

namespace alpa {
namespace {

template <class Sample>
void multiply(Sample& sample, double factor) {
  sample.median_s *= factor;
  sample.spread_s *= factor;
  sample.sample_spread_s *= factor;
  for (NodeTime& time : sample.on_nodes) time = {time.median_s * factor, time.spread_s * factor};
}

void multiply(Link& link, double factor) {
  link.latency_s *= factor;
  link.bytes_per_s /= factor;
}

}  // namespace

void correct_kinds(Profile& profile, const std::map<std::string, double>& factors) {
  const auto factor_of = [&](const std::string& kind) {
    const auto found = factors.find(kind);
    return found == factors.end() ? 1.0 : found->second;
  };
  for (auto& [signature, sample] : profile.operators)
    multiply(sample, factor_of(cost_kind_of_operator(signature)));
  for (CollectiveSample& sample : profile.collectives)
    multiply(sample, factor_of(cost_kind_of_collective(sample.kind, sample.group.nodes > 1)));
  Cluster& cluster = profile.cluster;
  multiply(cluster.within_node, factor_of(cost_kind_of_collective(CollectiveKind::send, false)));
  multiply(cluster.between_nodes, factor_of(cost_kind_of_collective(CollectiveKind::send, true)));
  cluster.launch_s *= factor_of(kCostOfCopies);
  cluster.memory_bytes_per_s /= factor_of(kCostOfCopies);
  cluster.host_bytes_per_s /= factor_of(kCostOfMoves);
}

double correct_smallest_sum(Profile& profile, GroupShape all_devices, double seconds) {
  const auto is_of_all = [&](const CollectiveSample& sample) {
    return sample.kind == CollectiveKind::all_reduce && sample.group == all_devices;
  };
  const auto end = profile.collectives.end();  // sorted by kind, group and bytes
  const auto smallest = std::find_if(profile.collectives.begin(), end, is_of_all);
  if (smallest == end || smallest->median_s <= 0) return seconds;
  const auto next = std::next(smallest);
  const double price_s = next != end && is_of_all(*next) ? std::min(seconds, next->median_s) : seconds;
  multiply(*smallest, price_s / smallest->median_s);
  return price_s;
}

void lengthen_calls(Profile& profile, double seconds) {
  for (auto& [signature, sample] : profile.operators) {
    if (sample.status != SampleStatus::measured) continue;
    sample.median_s += seconds;
    for (NodeTime& time : sample.on_nodes)
      if (time.median_s > 0) time.median_s += seconds;
  }
}

}  // namespace alpa
