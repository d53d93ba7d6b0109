#include "libalpa/planner/search/stage_modes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"

namespace alpa {

namespace {

/// Stages with that many times the layers that are their devices' share are slower than all others.
constexpr double kMoreThanShare = 1.5;

/// Of a bound: a price of memory is tried if it may raise it by that much.
constexpr double kWorthRaising = 1e-2;

/// What is better comes first.
std::tuple<bool, int, double> rank_of(const StageWay& way, int in_flight) {
  const bool is_short = way.most_in_flight < in_flight;
  return {is_short, is_short ? -way.most_in_flight : 0, step_s(way.seconds)};
}

/// 1, 2, 3, 4, 6, 8, 12 ...: what holds of so many holds of more.
int half_power_below(int in_flight) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(in_flight)));
  return in_flight >= power + power / 2 ? power + power / 2 : power;
}

}  // namespace

StageModes::StageModes(const PlanningGraph& planning, const CostTable& book, const StageSpans& spans,
                       std::vector<MeshShape> meshes, const std::vector<LayerForm>& rematerialize,
                       const Options& options)
    : planning_(planning),
      book_(book),
      spans_(spans),
      meshes_(std::move(meshes)),
      options_(options),
      estimates_(planning, book.costs(), options.micro_batches),
      fronts_(meshes_.size()) {
  for (const LayerForm form : rematerialize)
    all_layers_.try_emplace(form, planning, alpa::all_layers(planning, form));
}

std::unique_ptr<TemplateFront> StageModes::front(const MeshShape& mesh, LayerForm form) const {
  const Cluster& cluster = book_.costs().cluster();
  const double share =
      1.0 * device_count(mesh) / spans_.devices();  // of all layers, a stage on that mesh has
  return std::make_unique<TemplateFront>(
      planning_, book_.known(mesh),
      TemplateOptions{.micro_batches = options_.micro_batches,
                      .rematerialize = form,
                      .most_in_flight = options_.most_in_flight,
                      .enough_bytes = cluster.memory_bytes / (kMoreThanShare * share),
                      .cache = options_.cache});
}

bool StageModes::find_bounds(PlanningClock& clock) {
  clock.begin(options_.name + ": layers bounded on their meshes", static_cast<int>(meshes_.size()));
  run_tasks(static_cast<int>(meshes_.size()), options_.threads, [&](int i) {
    for (const auto& [form, scope] : all_layers_)
      if (!clock.is_over()) fronts_[i].push_back(front(meshes_[i], form));
    for (const auto& each : fronts_[i]) each->find_bound({0, 1}, Deadline(infinity));
    clock.one_done();
  });
  for (const Fronts& of_mesh : fronts_) {
    if (of_mesh.size() < all_layers_.size()) return false;
    for (const auto& front : of_mesh)
      if (!front->bounds().empty()) estimates_.add(front->bounds().front());
  }
  std::vector<double> of_unit(static_cast<std::size_t>(spans_.units()), infinity);
  for (const MeshShape& mesh : meshes_)
    for (int unit = 0; unit < spans_.units(); ++unit) {
      const int devices = device_count(mesh);
      of_unit[unit] = std::min(of_unit[unit], devices * least_step_s(mesh, {unit, unit + 1, devices}, 1));
    }
  device_s_ = layer_sums(of_unit);
  return true;
}

StageEstimates::Least StageModes::least(const StageMode& mode, const StageSpan& span, int in_flight) const {
  return estimates_.least(mode.mesh, mode.form, mode.recomputed_layers, spans_.first_layer(span),
                          spans_.end_layer(span), in_flight);
}

StageEstimates::Least StageModes::least(const StageSpan& span, int in_flight) const {
  StageEstimates::Least least;
  for (const StageMode& mode : modes_of(span)) {
    const auto [step_s, micro_batch_s, weighed_s] = this->least(mode, span, in_flight);
    least = {std::min(least.step_s, step_s), std::min(least.micro_batch_s, micro_batch_s),
             std::min(least.weighed_s, weighed_s)};
  }
  return least;
}

double StageModes::least_step_s(const MeshShape& mesh, const StageSpan& span, int in_flight) const {
  double least = infinity;
  for (const StageMode& mode : modes_of(mesh, span))
    least = std::min(least, this->least(mode, span, in_flight).step_s);
  return least;
}

std::vector<int> StageModes::in_flight_of_bounds(int devices) const {
  std::vector<int> all{1};
  if (const auto raised = raised_.find(devices); raised != raised_.end())
    std::ranges::copy_if(raised->second, std::back_inserter(all), [](int held) { return held > 1; });
  return all;
}

/// Of mixes of all templates: it may be any of its layers that are computed again.
StageModes::PriceForMemory StageModes::price_for(const MeshShape& mesh, const StageSpan& span,
                                                 int in_flight) const {
  std::vector<TemplatePoint> points;
  for (const StageTemplate& whole : estimates_.templates())
    if (whole.mesh == mesh)
      points.push_back(
          point_of(whole, options_.micro_batches, spans_.first_layer(span), spans_.end_layer(span)));
  const auto memory = static_cast<double>(book_.costs().cluster().memory_bytes);
  PriceForMemory found{binding_price(points, in_flight, memory)};
  for (const TemplatePoint& point : points)
    found.most_bound_s = std::min(found.most_bound_s,
                                  point.step_s + found.price.per_byte_s * (point.bytes(in_flight) - memory));
  return found;
}

bool StageModes::raise_bounds(const StageSpan& span, int in_flight, double below_s, PlanningClock& clock) {
  in_flight = half_power_below(in_flight);
  if (clock.is_over() || raised_[span.devices].contains(in_flight)) return false;
  struct Raised {
    MeshShape mesh;
    LayerForm form;
    MemoryPrice price;
    std::vector<StageBound> bounds;
  };
  std::vector<Raised> all;
  for (const MeshShape& mesh : meshes_)
    if (device_count(mesh) == span.devices)
      if (const double known_s = least_step_s(mesh, span, in_flight); known_s < below_s)
        if (const auto [price, most_bound_s] = price_for(mesh, span, in_flight);
            price.per_byte_s > 0 && most_bound_s > (1 + kWorthRaising) * known_s)
          for (const auto& [form, scope] : all_layers_) all.push_back({mesh, form, price, {}});
  if (!all.empty()) raised_[span.devices].insert(in_flight);
  run_tasks(static_cast<int>(all.size()), options_.threads, [&](int i) {
    const auto bounding = front(all[i].mesh, all[i].form);
    bounding->find_bound(all[i].price, Deadline(std::max(0.0, clock.left_s()), clock.stop()));
    all[i].bounds = bounding->bounds();
  });
  for (const Raised& raised : all)
    for (const StageBound& bound : raised.bounds) estimates_.add(bound);
  return !all.empty();
}

std::vector<StageMode> StageModes::modes_of(const MeshShape& mesh, const StageSpan& span) const {
  std::vector<StageMode> modes;
  for (const auto& [form, scope] : all_layers_)
    for (int recomputed = spans_.end_layer(span) - spans_.first_layer(span); form && recomputed > 0;
         --recomputed)
      modes.push_back({mesh, recomputed, *form});
  modes.push_back({mesh});
  return modes;
}

std::vector<StageMode> StageModes::modes_of(const StageSpan& span) const {
  std::vector<StageMode> modes;
  for (const MeshShape& mesh : meshes_)
    if (device_count(mesh) == span.devices)
      std::ranges::copy(modes_of(mesh, span), std::back_inserter(modes));
  return modes;
}

/// Of those with that stage: others share the rest of the devices.
double StageModes::least_pipeline_s(const MeshShape& mesh, const StageSpan& span) const {
  const double others = device_s_.back() - sum_between(device_s_, span.first_unit, span.end_unit);
  const int rest = spans_.devices() - span.devices;
  return std::max(least_step_s(mesh, span, 1), rest > 0 ? others / rest : 0);
}

bool StageModes::is_useful(const MeshShape& mesh) const {
  return std::ranges::any_of(spans_.all(), [&](const StageSpan& span) {
    return span.devices == device_count(mesh) && least_pipeline_s(mesh, span) < options_.cutoff_s;
  });
}

bool StageModes::find_templates(PlanningClock& clock) {
  // Their problems take most of the memory of a search, so what is of no use goes first.
  for (Fronts& of_mesh : fronts_)
    std::erase_if(of_mesh, [&](const auto& front) { return front->bounds().empty(); });
  std::erase_if(
      fronts_, [&](const Fronts& of_mesh) { return of_mesh.empty() || !is_useful(of_mesh.front()->mesh()); });
  struct Found {
    std::vector<StageTemplate> templates;
    std::vector<StageBound> bounds;
    bool is_whole = true;
  };
  std::vector<Found> found(fronts_.size());
  std::vector<std::int64_t> work(fronts_.size());
  std::vector<std::size_t> largest_first(fronts_.size());  // so that threads end together
  for (std::size_t i = 0; i < fronts_.size(); ++i)
    for (const auto& front : fronts_[i]) {
      std::int64_t& cells = cells_[device_count(front->mesh())];
      cells = std::max(cells, front->cells());
      work[i] += front->cells();
    }
  std::iota(largest_first.begin(), largest_first.end(), 0);
  std::ranges::stable_sort(largest_first, std::ranges::greater(), [&](std::size_t i) { return work[i]; });
  clock.begin(options_.name + ": layers solved on their meshes", static_cast<int>(fronts_.size()));
  run_tasks(static_cast<int>(fronts_.size()), options_.threads, [&](int next) {
    const std::size_t i = largest_first[next];
    const Fronts of_mesh = std::move(fronts_[i]);
    const auto deadline = [&] { return Deadline(std::max(0.0, clock.left_s()), clock.stop()); };
    for (const auto& front : of_mesh) front->find_templates(deadline());
    for (const auto& front : of_mesh) {
      found[i].templates.insert(found[i].templates.end(), front->templates().begin(),
                                front->templates().end());
      found[i].bounds.insert(found[i].bounds.end(), front->bounds().begin(), front->bounds().end());
      found[i].is_whole = found[i].is_whole && !front->out_of_time();
    }
    clock.one_done();
  });
  fronts_.clear();
  bool is_whole = true;
  for (const Found& of_mesh : found) {
    is_whole = is_whole && of_mesh.is_whole;
    for (const StageTemplate& whole : of_mesh.templates)
      estimates_.add(whole, all_layers_.at(whole.rematerialize));
    for (const StageBound& bound : of_mesh.bounds) estimates_.add(bound);
  }
  return is_whole;
}

StageSeconds StageModes::arrivals(const StageSpan& span, const StageSides& sides) const {
  return estimates_.arrivals(span.devices, spans_.first_layer(span), spans_.end_layer(span), sides);
}

StageEstimates::LeastArrivals StageModes::least_arrivals(const StageSpan& span,
                                                         const StageSides& sides) const {
  return estimates_.least_arrivals(span.devices, spans_.first_layer(span), spans_.end_layer(span), sides);
}

std::int64_t StageModes::cells(int devices) const {
  const auto at = cells_.find(devices);
  return at == cells_.end() ? 0 : at->second;
}

void StageModes::for_each_way(const StageSpan& span, const std::function<void(const StageWay&)>& take) const {
  for (const MeshShape& mesh : meshes_)
    if (device_count(mesh) == span.devices)
      estimates_.for_each_way(mesh, spans_.first_layer(span), spans_.end_layer(span), take);
}

std::vector<StageModes::Estimated> StageModes::estimated(const StageSpan& span, int in_flight) const {
  std::vector<Estimated> modes;
  for (const MeshShape& mesh : meshes_) {
    if (device_count(mesh) != span.devices) continue;
    std::map<RecomputeForm, StageWay> best;
    estimates_.for_each_way(mesh, spans_.first_layer(span), spans_.end_layer(span), [&](const StageWay& way) {
      const auto [known, is_new] = best.try_emplace(form_of(way.id), way);
      if (!is_new && rank_of(way, in_flight) < rank_of(known->second, in_flight)) known->second = way;
    });
    for (const auto& [form, way] : best) modes.push_back({mode_of(way.id), way});
  }
  std::ranges::stable_sort(modes, {}, [&](const Estimated& each) { return rank_of(each.way, in_flight); });
  return modes;
}

std::optional<StageWay> StageModes::way_of(const StageMode& mode, const StageSpan& span,
                                           int in_flight) const {
  std::optional<StageWay> best;
  estimates_.for_each_way(
      mode.mesh, spans_.first_layer(span), spans_.end_layer(span), [&](const StageWay& way) {
        if (mode_of(way.id) == mode && (!best || rank_of(way, in_flight) < rank_of(*best, in_flight)))
          best = way;
      });
  return best;
}

RecomputeForm StageModes::form_of(int way) const {
  const int recomputing = estimates_.mix_of(way).recomputing;
  return recomputing < 0 ? RecomputeForm::full : *estimates_.templates()[recomputing].rematerialize;
}

StageMode StageModes::mode_of(int way) const {
  const TemplateMix mix = estimates_.mix_of(way);
  const int any = std::max(mix.keeping, mix.recomputing);
  return {estimates_.templates()[any].mesh, mix.recomputed_layers, form_of(way)};
}

StageSolution StageModes::part(int way, const StageSpan& span) const {
  const TemplateMix mix = estimates_.mix_of(way);
  std::vector<TemplatePart> parts;
  const auto add = [&](int of_template, int first, int end) {
    if (first == end) return;
    const StageTemplate& whole = estimates_.templates()[of_template];
    parts.push_back({whole, all_layers_.at(whole.rematerialize), first, end});
  };
  const int first = spans_.first_layer(span), end = spans_.end_layer(span);
  add(mix.recomputing, first, first + mix.recomputed_layers);
  add(mix.keeping, first + mix.recomputed_layers, end);
  return solution_of(parts);
}

}  // namespace alpa
