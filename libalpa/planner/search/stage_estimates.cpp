#include "libalpa/planner/search/stage_estimates.h"

#include <algorithm>
#include <cmath>
#include <set>

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

StageEstimates::StageEstimates(const PlanningGraph& planning, const CostModel& costs, int micro_batches)
    : planning_(planning), costs_(costs), micro_batches_(micro_batches) {
  add_crossings();
  find_shared_states();
}

void StageEstimates::add(const StageTemplate& whole, const StageScope& all) {
  of_mesh_[whole.mesh].push_back(static_cast<int>(templates_.size()));
  templates_.push_back(whole);
  prefixes_.push_back(prefix_of(whole, all));
}

void StageEstimates::add(const StageBound& bound) {
  std::vector<Bound>& known = bounds_[bound.mesh];
  auto at = std::ranges::find(known, bound.price, &Bound::price);
  if (at == known.end()) at = known.insert(at, Bound{bound.price, {}});
  Bound::Form& form = at->forms[bound.rematerialize];
  const auto sums_of = [](const StageBound::Layers& layers_s) {
    return layers_s.empty() ? LayerSums{} : layer_sums(layers_s);
  };
  form = {sums_of(bound.step_s), sums_of(bound.runs_s), sums_of(bound.weighed_s)};
}

void StageEstimates::add_crossings() {
  const Graph& graph = planning_.graph();
  for (auto* bytes : {&forward_bytes_, &backward_bytes_, &once_bytes_, &kept_for_recomputing_,
                      &taken_from_before_, &taken_from_behind_})
    bytes->assign(graph.layers.size() + 1, 0);
  for (const ValueIndex v : graph.values.indices()) {
    const Value& value = graph.values[v];
    if (value.producer < 0 || v == graph.gradient_square_sum) continue;
    const int made = node_of(graph, value.producer).layer;
    int low = made, high = made;
    std::set<int> takers;
    for (const NodeIndex user : planning_.uses.users_of(v)) {
      takers.insert(node_of(graph, user).layer);
      low = std::min(low, node_of(graph, user).layer);
      high = std::max(high, node_of(graph, user).layer);
    }
    const double bytes = static_cast<double>(byte_count(value.type));
    const bool once = phase_of_transfer(graph, v) == Phase::update;
    for (const int taker : takers)
      if (!once && taker != made) (taker > made ? taken_from_before_ : taken_from_behind_)[taker] += bytes;
    for (int layer = made + 1; layer <= high; ++layer) (once ? once_bytes_ : forward_bytes_)[layer] += bytes;
    for (int layer = made; layer > low; --layer) (once ? once_bytes_ : backward_bytes_)[layer] += bytes;
    if (node_of(graph, value.producer).phase != Phase::forward) continue;
    int first = high + 1;  // of other layers
    bool in_backward = false;
    for (const NodeIndex user : planning_.uses.users_of(v)) {
      const Node& node = node_of(graph, user);
      if (node.layer == made || node.phase == Phase::update) continue;
      first = std::min(first, node.layer);
      in_backward = in_backward || node.phase == Phase::backward;
    }
    for (int layer = made + 1; !in_backward && first <= high && layer <= first; ++layer)
      kept_for_recomputing_[layer] += bytes;
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

/// A value that comes from another stage arrives in parts, one for each device, which unpacks it.
double StageEstimates::arrival_s(double bytes, int devices, bool is_apart) const {
  if (bytes == 0) return 0;
  const double part = bytes / devices, unpacked_s = costs_.copy_seconds(part);
  if (!is_apart) return costs_.send_seconds(true, part) + unpacked_s;
  const int active = std::min(devices, costs_.cluster().devices_per_node);
  return costs_.arrival_seconds(part, active, active) + unpacked_s;
}

double StageEstimates::sum(LayerSums Prefix::*part, const TemplateMix& mix, int first, int end) const {
  const int keeps = first + mix.recomputed_layers;
  double sum = 0;
  if (keeps > first) sum += sum_between(prefixes_[mix.recomputing].*part, first, keeps);
  if (keeps < end) sum += sum_between(prefixes_[mix.keeping].*part, keeps, end);
  return sum;
}

double StageEstimates::resident_bytes(const TemplateMix& mix, int first, int end) const {
  const int any = mix.keeping >= 0 ? mix.keeping : mix.recomputing;
  const double messages =
      forward_bytes_[first] + backward_bytes_[first] + forward_bytes_[end] + backward_bytes_[end];
  double resident = sum(&Prefix::resident, mix, first, end) + messages / device_count(templates_[any].mesh);
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const auto user = std::ranges::lower_bound(shared_[i].users, first);
    if (shared_[i].home < first && user != shared_[i].users.end() && *user < end)
      resident += prefixes_[any].shared_bytes[i];
  }
  return resident;
}

double StageEstimates::lasting_bytes(int way, int first, int end, int in_flight) const {
  const TemplateMix mix = mix_of(way);
  return resident_bytes(mix, first, end) + in_flight * sum(&Prefix::per_micro_batch, mix, first, end);
}

double StageEstimates::working_bytes(int of_template, int first, int end) const {
  std::int64_t most = 0;
  for (int layer = first; layer < end; ++layer)
    most = std::max(most, templates_[of_template].layers[layer].working_bytes);
  return static_cast<double>(most);
}

StageSeconds StageEstimates::arrivals(int devices, int first, int end, const StageSides& sides) const {
  const double micro_batch_s = arrival_s(forward_bytes_[first], devices, sides.before_is_apart) +
                               arrival_s(backward_bytes_[end], devices, sides.after_is_apart);
  return {micro_batch_s, (micro_batches_ - 1) * micro_batch_s,
          arrival_s(once_bytes_[first], devices, sides.before_is_apart) +
              arrival_s(once_bytes_[end], devices, sides.after_is_apart)};
}

StageEstimates::LeastArrivals StageEstimates::least_arrivals(int devices, int first, int end,
                                                             const StageSides& sides) const {
  return {arrival_s(taken_from_before_[first], devices, sides.before_is_apart),
          arrival_s(taken_from_behind_[end - 1], devices, sides.after_is_apart)};
}

std::int64_t StageEstimates::least_memory(int of_template, int first, int end) const {
  const TemplateMix whole = templates_[of_template].rematerialize ? TemplateMix{of_template, -1, end - first}
                                                                  : TemplateMix{-1, of_template, 0};
  const double bytes = resident_bytes(whole, first, end) + working_bytes(of_template, first, end) +
                       sum(&Prefix::per_micro_batch, whole, first, end);
  return std::llround(bytes / (1 - kPacking));
}

StageWay StageEstimates::estimate(const TemplateMix& mix, int first, int end, double working) const {
  const double micro_batch_s = sum(&Prefix::micro_batch_s, mix, first, end);
  const double limit = static_cast<double>(costs_.cluster().memory_bytes);
  const double left = limit * (1 - kPacking) - resident_bytes(mix, first, end) - working;
  const double each = std::max(1.0, sum(&Prefix::per_micro_batch, mix, first, end));
  const int in_flight = left < 0 ? 0 : static_cast<int>(std::min(left / each, double{kMostMicroBatches}));
  return {in_flight,
          {micro_batch_s, (micro_batches_ - 1) * micro_batch_s, sum(&Prefix::update_s, mix, first, end)},
          id_of(mix)};
}

void StageEstimates::for_each_way(const MeshShape& mesh, int first, int end,
                                  const std::function<void(const StageWay&)>& take) const {
  const auto of_mesh = of_mesh_.find(mesh);
  if (of_mesh == of_mesh_.end()) return;
  const int layers = end - first;
  std::vector<double> before(static_cast<std::size_t>(layers) + 1, 0), after = before;  // working bytes
  const auto of_layer = [&](int of_template, int layer) {
    return static_cast<double>(templates_[of_template].layers[layer].working_bytes);
  };
  for (const int keeping : of_mesh->second) {
    if (templates_[keeping].rematerialize) continue;
    for (int layer = layers; layer-- > 0;)
      after[layer] = std::max(after[layer + 1], of_layer(keeping, first + layer));
    take(estimate({-1, keeping, 0}, first, end, after[0]));
    for (const int recomputing : of_mesh->second) {
      if (!templates_[recomputing].rematerialize) continue;
      for (int layer = 0; layer + 1 < layers; ++layer) {
        before[layer + 1] = std::max(before[layer], of_layer(recomputing, first + layer));
        take(estimate({recomputing, keeping, layer + 1}, first, end,
                      std::max(before[layer + 1], after[layer + 1])));
      }
    }
  }
  for (const int recomputing : of_mesh->second)
    if (templates_[recomputing].rematerialize)
      take(estimate({recomputing, -1, layers}, first, end, working_bytes(recomputing, first, end)));
}

/// Templates are all there by the time that ids are asked for.
int StageEstimates::id_of(const TemplateMix& mix) const {
  const int templates = static_cast<int>(templates_.size()) + 1,
            layers = static_cast<int>(planning_.graph().layers.size()) + 1;
  return ((mix.recomputing + 1) * templates + mix.keeping + 1) * layers + mix.recomputed_layers;
}

TemplateMix StageEstimates::mix_of(int id) const {
  const int templates = static_cast<int>(templates_.size()) + 1,
            layers = static_cast<int>(planning_.graph().layers.size()) + 1;
  return {id / layers / templates - 1, id / layers % templates - 1, id % layers};
}

double StageEstimates::least(LayerSums Bound::Form::*sum, const std::vector<Bound>& bounds,
                             RecomputeForm form, int recomputed, int first, int end, int in_flight) const {
  const int keeps = first + recomputed;
  const double memory = static_cast<double>(costs_.cluster().memory_bytes);
  double most = -infinity;
  for (const Bound& bound : bounds) {
    if (bound.price.in_flight > in_flight) continue;
    double least = -bound.price.per_byte_s * memory;
    const auto add = [&](const LayerForm& of, int begin, int last) {
      if (begin == last) return;
      const auto known = bound.forms.find(of);
      const bool is_bounded = known != bound.forms.end() && !(known->second.*sum).empty();
      least += is_bounded ? sum_between(known->second.*sum, begin, last) : -infinity;
    };
    add(form, first, keeps);
    add(std::nullopt, keeps, end);
    if (keeps > first && keeps < end)
      least -= bound.price.per_byte_s * bound.price.in_flight * kept_for_recomputing_[keeps];
    most = std::max(most, least);
  }
  return most == -infinity ? infinity : std::max(0.0, most);
}

StageEstimates::Least StageEstimates::least(const MeshShape& mesh, RecomputeForm form, int recomputed,
                                            int first, int end, int in_flight) const {
  const auto at = bounds_.find(mesh);
  if (at == bounds_.end()) return {};
  const auto least_of = [&](LayerSums Bound::Form::*sum) {
    return least(sum, at->second, form, recomputed, first, end, in_flight);
  };
  const double runs_s = least_of(&Bound::Form::runs_s), weighed_s = least_of(&Bound::Form::weighed_s);
  double step_s = least_of(&Bound::Form::step_s);
  if (runs_s < infinity) step_s = std::max(step_s, runs_s);
  return {step_s, runs_s / micro_batches_, weighed_s < infinity ? std::max(step_s, weighed_s) : step_s};
}

}  // namespace alpa
