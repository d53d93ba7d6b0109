#include "libalpa/planner/search/stage_modes.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"

namespace alpa {

StageModes::StageModes(const PlanningGraph& planning, const CostTable& book, const StageSpans& spans,
                       std::vector<StageMode> modes, const Options& options)
    : planning_(planning),
      book_(book),
      spans_(spans),
      modes_(std::move(modes)),
      options_(options),
      estimates_(planning, book.costs(), options.micro_batches, options.is_apart),
      fronts_(modes_.size()) {
  for (const StageMode& mode : modes_)
    all_layers_.try_emplace(mode.rematerialize, planning, alpa::all_layers(planning, mode.rematerialize));
}

bool StageModes::find_bounds(PlanningClock& clock) {
  clock.begin(options_.name + ": layers bounded on their meshes", static_cast<int>(modes_.size()));
  run_tasks(static_cast<int>(modes_.size()), options_.threads, [&](int i) {
    if (!clock.is_over())
      fronts_[i] = std::make_unique<TemplateFront>(
          planning_, book_.known(modes_[i].mesh),
          TemplateOptions{options_.micro_batches, modes_[i].rematerialize, options_.most_in_flight});
    clock.one_done();
  });
  for (const auto& front : fronts_) {
    if (!front) return false;
    if (!front->bounds().empty()) estimates_.add(front->bounds().front());
  }
  std::vector<double> of_unit(static_cast<std::size_t>(spans_.units()), infinity);
  for (const StageMode& mode : modes_)
    for (int unit = 0; unit < spans_.units(); ++unit) {
      const int devices = device_count(mode.mesh);
      of_unit[unit] = std::min(of_unit[unit], devices * least_step_s(mode, {unit, unit + 1, devices}));
    }
  device_s_ = layer_sums(of_unit);
  return true;
}

double StageModes::least_step_s(const StageMode& mode, const StageSpan& span) const {
  return estimates_.least_step_s(mode.mesh, mode.rematerialize, spans_.first_layer(span),
                                 spans_.end_layer(span));
}

/// Of those with that stage: others share the rest of the devices.
double StageModes::least_pipeline_s(const StageMode& mode, const StageSpan& span) const {
  const double others = device_s_.back() - sum_between(device_s_, span.first_unit, span.end_unit);
  const int rest = spans_.devices() - span.devices;
  return std::max(least_step_s(mode, span), rest > 0 ? others / rest : 0);
}

bool StageModes::is_useful(const StageMode& mode) const {
  return std::ranges::any_of(spans_.all(), [&](const StageSpan& span) {
    return span.devices == device_count(mode.mesh) && least_pipeline_s(mode, span) < options_.cutoff_s;
  });
}

bool StageModes::find_templates(PlanningClock& clock) {
  // Their problems take most of the memory of a search, so what is of no use goes first.
  std::erase_if(fronts_, [&](const std::unique_ptr<TemplateFront>& front) {
    return front->bounds().empty() || !is_useful({front->mesh(), front->rematerializes()});
  });
  struct Found {
    std::vector<StageTemplate> templates;
    std::vector<StageBound> bounds;
    bool is_whole = true;
  };
  std::vector<Found> found(fronts_.size());
  for (const auto& front : fronts_) {
    std::int64_t& cells = cells_[device_count(front->mesh())];
    cells = std::max(cells, front->cells());
  }
  clock.begin(options_.name + ": layers solved on their meshes", static_cast<int>(fronts_.size()));
  run_tasks(static_cast<int>(fronts_.size()), options_.threads, [&](int i) {
    const std::unique_ptr<TemplateFront> front = std::move(fronts_[i]);
    front->find_templates(Deadline(std::max(0.0, clock.left_s()), clock.stop()));
    found[i] = {front->templates(), front->bounds(), !front->out_of_time()};
    clock.one_done();
  });
  fronts_.clear();
  bool is_whole = true;
  for (const Found& of_mode : found) {
    is_whole = is_whole && of_mode.is_whole;
    for (const StageTemplate& whole : of_mode.templates)
      estimates_.add(whole, all_layers_.at(whole.rematerialize));
    for (std::size_t b = 1; b < of_mode.bounds.size(); ++b) estimates_.add(of_mode.bounds[b]);
  }
  return is_whole;
}

std::int64_t StageModes::cells(int devices) const {
  const auto at = cells_.find(devices);
  return at == cells_.end() ? 0 : at->second;
}

std::vector<StageModes::Estimated> StageModes::estimated(const StageSpan& span, int in_flight) const {
  const auto rank = [&](const StageWay& way) {
    return std::pair(way.most_in_flight < in_flight, step_s(way.seconds));
  };
  std::map<StageMode, StageWay> best;
  for (std::size_t t = 0; t < estimates_.templates().size(); ++t) {
    const StageTemplate& whole = estimates_.templates()[t];
    if (device_count(whole.mesh) != span.devices) continue;
    const StageWay way =
        estimates_.estimate(static_cast<int>(t), spans_.first_layer(span), spans_.end_layer(span));
    const auto [at, is_new] = best.try_emplace({whole.mesh, whole.rematerialize}, way);
    if (!is_new && rank(way) < rank(at->second)) at->second = way;
  }
  std::vector<Estimated> modes;
  for (const auto& [mode, way] : best) modes.push_back({mode, way});
  std::ranges::stable_sort(modes, {}, [&](const Estimated& each) { return rank(each.way); });
  return modes;
}

StageSolution StageModes::part(int of_template, const StageSpan& span) const {
  const StageTemplate& whole = estimates_.templates()[of_template];
  return part_of(whole, all_layers_.at(whole.rematerialize), spans_.first_layer(span),
                 spans_.end_layer(span));
}

}  // namespace alpa
