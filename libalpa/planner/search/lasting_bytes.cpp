#include "libalpa/planner/search/lasting_bytes.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "libalpa/base/units.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

MemoryUse lasting_bytes(const Graph& graph, int first_layer, int end_layer,
                        const std::vector<ValueIndex>& on_host) {
  const GraphUses uses(graph);
  const auto is_within = [&](NodeIndex n) {
    const int layer = node_of(graph, n).layer;
    return layer >= first_layer && layer < end_layer;
  };
  MemoryUse lasting;
  for (const State& state : graph.states) {
    if (std::ranges::none_of(uses.users_of(state.value), is_within) ||
        std::ranges::binary_search(on_host, state.value))
      continue;
    (state.is_parameter ? lasting.parameters : lasting.optimizer) +=
        byte_count(value_of(graph, state.value).type);
  }
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (!node.op->sums_micro_batches || !is_within(n)) continue;
    for (const ValueIndex sum : node.results) lasting.gradients += byte_count(value_of(graph, sum).type);
  }
  lasting.total = lasting.parameters + lasting.optimizer + lasting.gradients;
  return lasting;
}

MemoryUse lasting_bytes(const Graph& graph, const std::vector<ValueIndex>& on_host) {
  return lasting_bytes(graph, 0, std::numeric_limits<int>::max(), on_host);
}

MemoryUse share_of(const MemoryUse& whole, int devices) {
  MemoryUse share = whole;
  for (std::int64_t* bytes : {&share.parameters, &share.optimizer, &share.gradients, &share.activations,
                              &share.workspace, &share.total})
    *bytes /= devices;
  return share;
}

std::string lasting_text(const MemoryUse& use) {
  return fmt::format("parameters {}, the optimizer's states {} and sums of gradients {}",
                     bytes_text(use.parameters), bytes_text(use.optimizer), bytes_text(use.gradients));
}

}  // namespace alpa
