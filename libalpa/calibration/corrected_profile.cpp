#include "libalpa/calibration/corrected_profile.h"

#include "libalpa/cluster/cost_kind.h"

namespace alpa {
namespace {

template <class Sample>
void correct(Sample& sample, double factor, double added_s) {
  sample.median_s = sample.median_s * factor + added_s;
  sample.spread_s *= factor;
  sample.sample_spread_s *= factor;
  for (NodeTime& time : sample.on_nodes)
    if (time.median_s > 0) time = {time.median_s * factor + added_s, time.spread_s * factor};
}

void correct(Link& link, double factor) {
  link.latency_s *= factor;
  link.bytes_per_s /= factor;
}

}  // namespace

Profile corrected_profile(Profile profile, const std::map<std::string, double>& factors, double call_gap_s) {
  const auto factor_of = [&](const std::string& kind) {
    const auto found = factors.find(kind);
    return found == factors.end() ? 1.0 : found->second;
  };
  for (auto& [signature, sample] : profile.operators)
    if (sample.status == SampleStatus::measured)
      correct(sample, factor_of(cost_kind_of_operator(signature)), call_gap_s);
  for (CollectiveSample& sample : profile.collectives)
    correct(sample, factor_of(cost_kind_of_collective(sample.kind, sample.group.nodes > 1)), 0);
  Cluster& cluster = profile.cluster;
  correct(cluster.within_node, factor_of(cost_kind_of_collective(CollectiveKind::send, false)));
  correct(cluster.between_nodes, factor_of(cost_kind_of_collective(CollectiveKind::send, true)));
  cluster.launch_s *= factor_of(kCostOfCopies);
  cluster.memory_bytes_per_s /= factor_of(kCostOfCopies);
  return profile;
}

}  // namespace alpa
