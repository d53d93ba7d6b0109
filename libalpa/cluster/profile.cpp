#include "libalpa/cluster/profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/fingerprint.h"

namespace alpa {

const char* collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::shift:
      return "shift";
    case CollectiveKind::send:
      return "send";
  }
  return "";
}

std::vector<int> places_of(const std::vector<std::string>& names, const Profile& profile) {
  std::vector<int> places;
  for (const std::string& name : names) {
    const auto known = std::find_if(profile.nodes.begin(), profile.nodes.end(),
                                    [&](const NodeSample& each) { return each.name == name; });
    places.push_back(known == profile.nodes.end() ? -1 : static_cast<int>(known - profile.nodes.begin()));
  }
  return places;
}

void put_nodes(Profile& profile, const std::vector<NodeSample>& nodes) {
  for (const NodeSample& node : nodes) {
    const int place = places_of({node.name}, profile)[0];
    if (place < 0)
      profile.nodes.push_back(node);
    else
      profile.nodes[place] = node;
  }
}

std::string profile_fingerprint(const Profile& profile) {
  std::string text = cluster_fingerprint(profile.cluster);
  for (const auto& [signature, sample] : profile.operators)
    text += fmt::format("\n{} {} {}", signature, sample.median_s, static_cast<int>(sample.status));
  for (const CollectiveSample& sample : profile.collectives)
    text += fmt::format("\n{} {} {} {} {}", collective_name(sample.kind), sample.group.nodes,
                        sample.group.per_node, sample.bytes, sample.median_s);
  return fingerprint(text);
}

}  // namespace alpa
