#include "libalpa/planner/search/stage_estimates.h"

#include <algorithm>
#include <cmath>

#include "libalpa/base/infinity.h"
#include "libalpa/sharding/sharding_spec.h"

namespace alpa {
namespace {

/// Of a device's memory, for what only lowering knows: what packing loses.
constexpr double kPacking = 0.01;

template <class Member>
LayerSums sums_of_layers(const std::vector<LayerCosts>& layers, Member member) {
  std::vector<double> each;
  for (const LayerCosts& layer : layers) each.push_back(static_cast<double>(layer.*member));
  return layer_sums(each);
}

}  // namespace

StageEstimates::StageEstimates(const PlanningGraph& planning, const CostModel& costs, int micro_batches,
                               bool is_apart)
    : planning_(planning), costs_(costs), micro_batches_(micro_batches), is_apart_(is_apart) {
  add_crossings();
  find_shared_states();
}

void StageEstimates::add(const StageTemplate& whole, const StageScope& all) {
  templates_.push_back(whole);
  prefixes_.push_back(prefix_of(whole, all));
}

void StageEstimates::add(const StageBound& bound) {
  const double all_memory_s = bound.price.per_byte_s * static_cast<double>(costs_.cluster().memory_bytes);
  bound_[{bound.mesh, bound.rematerialize}].push_back(
      {bound.slack_s + all_memory_s, layer_sums(bound.layers_s)});
}

void StageEstimates::add_crossings() {
  const Graph& graph = planning_.graph();
  for (auto* bytes : {&forward_bytes_, &backward_bytes_, &once_bytes_})
    bytes->assign(graph.layers.size() + 1, 0);
  for (const ValueIndex v : graph.values.indices()) {
    const Value& value = graph.values[v];
    if (value.producer < 0 || v == graph.gradient_square_sum) continue;
    const int made = node_of(graph, value.producer).layer;
    int low = made, high = made;
    for (const NodeIndex user : planning_.uses.users_of(v)) {
      low = std::min(low, node_of(graph, user).layer);
      high = std::max(high, node_of(graph, user).layer);
    }
    const double bytes = static_cast<double>(byte_count(value.type));
    const bool once = phase_of_transfer(graph, v) == Phase::update;
    for (int layer = made + 1; layer <= high; ++layer) (once ? once_bytes_ : forward_bytes_)[layer] += bytes;
    for (int layer = made; layer > low; --layer) (once ? once_bytes_ : backward_bytes_)[layer] += bytes;
  }
}

void StageEstimates::find_shared_states() {
  const Graph& graph = planning_.graph();
  for (const StateIndex s : graph.states.indices()) {
    std::vector<int> layers;
    for (const NodeIndex user : planning_.uses.users_of(graph.states[s].value))
      layers.push_back(node_of(graph, user).layer);
    std::ranges::sort(layers);
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    if (layers.size() > 1) shared_.push_back({s, layers.front(), layers});
  }
}

StageEstimates::Prefix StageEstimates::prefix_of(const StageTemplate& whole, const StageScope& all) const {
  Prefix prefix{sums_of_layers(whole.layers, &LayerCosts::micro_batch_s),
                sums_of_layers(whole.layers, &LayerCosts::update_s),
                sums_of_layers(whole.layers, &LayerCosts::resident_bytes),
                sums_of_layers(whole.layers, &LayerCosts::micro_batch_bytes),
                {}};
  const Graph& graph = planning_.graph();
  for (const Shared& shared : shared_) {
    const ValueIndex v = graph.states[shared.state].value;
    const TensorType tile = tile_type(value_of(graph, v).type,
                                      whole.solution->value_layout.at(all.canonical_value(v)), whole.mesh);
    prefix.shared_bytes.push_back(static_cast<double>(buffer_bytes(tile)));
  }
  return prefix;
}

/// A value that comes from another stage arrives in parts, one for each device.
double StageEstimates::arrival_s(double bytes, int devices) const {
  if (bytes == 0) return 0;
  if (!is_apart_) return costs_.send_seconds(true, bytes / devices);
  return costs_.arrival_seconds(bytes / devices, std::min(devices, costs_.cluster().devices_per_node));
}

double StageEstimates::resident_bytes(int of_template, int first, int end) const {
  const StageTemplate& whole = templates_[of_template];
  const Prefix& sums = prefixes_[of_template];
  const double messages =
      forward_bytes_[first] + backward_bytes_[first] + forward_bytes_[end] + backward_bytes_[end];
  double resident = sum_between(sums.resident, first, end) + messages / device_count(whole.mesh);
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const auto user = std::ranges::lower_bound(shared_[i].users, first);
    if (shared_[i].home < first && user != shared_[i].users.end() && *user < end)
      resident += sums.shared_bytes[i];
  }
  double working = 0;
  for (int layer = first; layer < end; ++layer)
    working = std::max(working, static_cast<double>(whole.layers[layer].working_bytes));
  return resident + working;
}

std::int64_t StageEstimates::least_memory(int of_template, int first, int end) const {
  const double activations = sum_between(prefixes_[of_template].per_micro_batch, first, end);
  return std::llround((resident_bytes(of_template, first, end) + activations) / (1 - kPacking));
}

StageWay StageEstimates::estimate(int of_template, int first, int end) const {
  const StageTemplate& whole = templates_[of_template];
  const Prefix& sums = prefixes_[of_template];
  const int devices = device_count(whole.mesh);
  const double arriving = forward_bytes_[first] + backward_bytes_[end];
  const double once = once_bytes_[first] + once_bytes_[end];
  const double micro_batch_s = sum_between(sums.micro_batch_s, first, end) + arrival_s(arriving, devices);
  const double update_s = sum_between(sums.update_s, first, end) + arrival_s(once, devices);

  const double limit = static_cast<double>(costs_.cluster().memory_bytes);
  const double left = limit * (1 - kPacking) - resident_bytes(of_template, first, end);
  const double each = std::max(1.0, sum_between(sums.per_micro_batch, first, end));
  const int in_flight = left < 0 ? 0 : static_cast<int>(std::min(left / each, double{kMostMicroBatches}));
  return {in_flight, {micro_batch_s, (micro_batches_ - 1) * micro_batch_s, update_s}, of_template};
}

double StageEstimates::least_step_s(const MeshShape& mesh, bool rematerialize, int first, int end) const {
  const auto at = bound_.find({mesh, rematerialize});
  if (at == bound_.end()) return 0;
  double most = 0;
  for (const Bound& bound : at->second)
    most = std::max(most, sum_between(bound.layers_s, first, end) - bound.free_s);
  return most;
}

}  // namespace alpa
