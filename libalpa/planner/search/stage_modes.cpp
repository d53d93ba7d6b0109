#include "libalpa/planner/search/stage_modes.h"

#include <algorithm>
#include <tuple>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"

namespace alpa {

namespace {

/// What is better comes first.
std::tuple<bool, int, double> rank_of(const StageWay& way, int in_flight) {
  const bool is_short = way.most_in_flight < in_flight;
  return {is_short, is_short ? -way.most_in_flight : 0, step_s(way.seconds)};
}

}  // namespace

StageModes::StageModes(const PlanningGraph& planning, const CostTable& book, const StageSpans& spans,
                       std::vector<MeshShape> meshes, const std::vector<bool>& rematerialize,
                       const Options& options)
    : planning_(planning),
      book_(book),
      spans_(spans),
      meshes_(std::move(meshes)),
      options_(options),
      estimates_(planning, book.costs(), options.micro_batches),
      fronts_(meshes_.size()) {
  for (const bool recomputes : rematerialize)
    all_layers_.try_emplace(recomputes, planning, alpa::all_layers(planning, recomputes));
}

bool StageModes::find_bounds(PlanningClock& clock) {
  clock.begin(options_.name + ": layers bounded on their meshes", static_cast<int>(meshes_.size()));
  run_tasks(static_cast<int>(meshes_.size()), options_.threads, [&](int i) {
    for (const auto& [recomputes, scope] : all_layers_)
      if (!clock.is_over())
        fronts_[i].push_back(std::make_unique<TemplateFront>(
            planning_, book_.known(meshes_[i]),
            TemplateOptions{options_.micro_batches, recomputes, options_.most_in_flight, options_.cache}));
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
      of_unit[unit] = std::min(of_unit[unit], devices * least_step_s(mesh, {unit, unit + 1, devices}));
    }
  device_s_ = layer_sums(of_unit);
  return true;
}

double StageModes::least_step_s(const StageMode& mode, const StageSpan& span) const {
  return estimates_.least(mode.mesh, mode.recomputed_layers, spans_.first_layer(span), spans_.end_layer(span))
      .step_s;
}

double StageModes::least_step_s(const MeshShape& mesh, const StageSpan& span) const {
  double least = infinity;
  for (int recomputed = spans_.end_layer(span) - spans_.first_layer(span); recomputed >= 0; --recomputed)
    least = std::min(least, least_step_s(StageMode{mesh, recomputed}, span));
  return least;
}

double StageModes::least_step_s(const StageSpan& span) const {
  double least = infinity;
  for (const StageMode& mode : modes_of(span)) least = std::min(least, least_step_s(mode, span));
  return least;
}

std::vector<StageMode> StageModes::modes_of(const StageSpan& span) const {
  std::vector<StageMode> modes;
  for (const MeshShape& mesh : meshes_)
    for (int recomputed = spans_.end_layer(span) - spans_.first_layer(span);
         device_count(mesh) == span.devices && recomputed >= 0; --recomputed)
      modes.push_back({mesh, recomputed});
  return modes;
}

double StageModes::least_micro_batch_s(const StageSpan& span) const {
  double least = infinity;
  for (const StageMode& mode : modes_of(span))
    least = std::min(
        least,
        estimates_.least(mode.mesh, mode.recomputed_layers, spans_.first_layer(span), spans_.end_layer(span))
            .micro_batch_s);
  return least;
}

/// Of those with that stage: others share the rest of the devices.
double StageModes::least_pipeline_s(const MeshShape& mesh, const StageSpan& span) const {
  const double others = device_s_.back() - sum_between(device_s_, span.first_unit, span.end_unit);
  const int rest = spans_.devices() - span.devices;
  return std::max(least_step_s(mesh, span), rest > 0 ? others / rest : 0);
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
  for (const Fronts& of_mesh : fronts_)
    for (const auto& front : of_mesh) {
      std::int64_t& cells = cells_[device_count(front->mesh())];
      cells = std::max(cells, front->cells());
    }
  clock.begin(options_.name + ": layers solved on their meshes", static_cast<int>(fronts_.size()));
  run_tasks(static_cast<int>(fronts_.size()), options_.threads, [&](int i) {
    const Fronts of_mesh = std::move(fronts_[i]);
    const auto deadline = [&] { return Deadline(std::max(0.0, clock.left_s()), clock.stop()); };
    for (const auto& front : of_mesh) front->find_templates(deadline());
    // A stage may have layers of both forms, which a bound holds for at one price.
    for (const auto& front : of_mesh)
      for (const auto& other : of_mesh)
        if (front != other) front->find_bounds(other->bounds(), deadline());
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
    std::optional<StageWay> best;
    estimates_.for_each_way(mesh, spans_.first_layer(span), spans_.end_layer(span), [&](const StageWay& way) {
      if (!best || rank_of(way, in_flight) < rank_of(*best, in_flight)) best = way;
    });
    if (best) modes.push_back({mode_of(best->id), *best});
  }
  std::ranges::stable_sort(modes, {}, [&](const Estimated& each) { return rank_of(each.way, in_flight); });
  return modes;
}

std::optional<StageWay> StageModes::way_of(const StageMode& mode, const StageSpan& span,
                                           int in_flight) const {
  std::optional<StageWay> best;
  estimates_.for_each_way(mode.mesh, spans_.first_layer(span), spans_.end_layer(span),
                          [&](const StageWay& way) {
                            const int recomputed = estimates_.mix_of(way.id).recomputed_layers;
                            if (recomputed == mode.recomputed_layers &&
                                (!best || rank_of(way, in_flight) < rank_of(*best, in_flight)))
                              best = way;
                          });
  return best;
}

StageMode StageModes::mode_of(int way) const {
  const TemplateMix mix = estimates_.mix_of(way);
  return {estimates_.templates()[std::max(mix.keeping, mix.recomputing)].mesh, mix.recomputed_layers};
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
