#include "libalpa/planner/search/baseline_trials.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/planner/stage_places.h"

namespace alpa {
namespace {

/// Before there is any plan, those that take that many times the least bound wait; where none is found, as
/// many times longer are looked at.
constexpr double kPatience = 2;

}  // namespace

BaselineTrials::BaselineTrials(const CostModel& costs, const PlannerOptions& options,
                               PlanSelection& selection, PlanningClock& clock)
    : costs_(costs),
      options_(options),
      selection_(selection),
      clock_(clock),
      threads_(thread_count(options.threads)) {}

bool BaselineTrials::try_all(PricedGraph& graph, int micro_batches, int devices,
                             const std::vector<std::string>& methods) {
  const std::string name = fmt::format("baselines, {}", count_text(micro_batches, "micro-batch"));
  const Cluster &cluster = costs_.cluster(), fastest = best_of_parts(cluster);
  const Baselines named(graph.graph, devices, cluster, micro_batches, options_);
  std::vector<Bounded> all;
  for (const std::string& method : methods)
    if (is_wanted(options_, method))
      for (PinnedPlan& pinned : named.of(method)) {
        if (is_against(pinned, graph.graph) || is_known_short(pinned)) continue;
        place_stages(pinned.stages, cluster, meshes_of_stages(pinned));
        const bool is_bounded = !costs_.is_measured() && !may_defer_updates(options_);
        all.push_back({is_bounded ? named.least_s(pinned, fastest) : 0, std::move(pinned)});
      }
  leave_slow(all);
  if (!price_meshes(graph, all, name)) return false;
  for (auto& [least_s, pinned] : all) {
    const std::vector<StageFloor> floors = stage_floors(graph.planning, graph.book, pinned.stages);
    least_s = may_defer_updates(options_)
                  ? least_overlapping_s(floors)
                  : least_pipeline_s(floors, pinned.schedule, pinned.stages_per_mesh, pinned.micro_batches);
  }
  std::ranges::stable_sort(all, {}, &Bounded::least_s);
  leave_slow(all);
  clock_.begin(name, static_cast<int>(all.size()));
  double longest_s = all.empty() || all.front().least_s == 0 ? infinity : kPatience * all.front().least_s;
  for (; !all.empty(); longest_s *= kPatience) {
    std::vector<Trial> waiting;
    for (; !all.empty(); leave_slow(all)) {
      if (!selection_.has_time()) return false;
      const std::ptrdiff_t at_once = clock_.is_over() ? 1 : 8;  // whatever the number of threads
      const auto end = all.begin() + std::min(std::ssize(all), at_once);
      std::vector<PinnedPlan> tried;
      for (auto each = all.begin(); each != end; ++each) tried.push_back(std::move(each->pinned));
      all.erase(all.begin(), end);
      for (Trial& trial : try_out(graph, std::move(tried), std::min(most_s(), longest_s)))
        trial.outcome.is_too_slow ? waiting.push_back(std::move(trial)) : enter(graph, std::move(trial));
    }
    for (Trial& trial : waiting)
      if (most_s() <= longest_s)
        enter(graph, std::move(trial));
      else
        all.push_back({longest_s, std::move(trial.pinned)});
  }
  return true;
}

void BaselineTrials::try_pinned(PricedGraph& graph, PinnedPlan pinned) {
  for (StageRequest& request : pinned.stages) request.micro_batches = pinned.micro_batches;
  if (!price_meshes(graph, {{0, pinned}}, pinned.method)) return;
  clock_.begin(pinned.method, 0);
  for (Trial& trial : try_out(graph, {std::move(pinned)}, infinity)) enter(graph, std::move(trial));
}

bool BaselineTrials::is_against(const PinnedPlan& pinned, const Graph& graph) {
  const PlanConstraint* constraint = against(options_.constraints, pinned, graph, costs_.cluster());
  if (constraint != nullptr && against_.insert(pinned.method).second)
    selection_.note_failure(pinned.method, fmt::format("violates a constraint: {} ({})",
                                                       constraint_text(*constraint), constraint->where));
  return constraint != nullptr;
}

/// Larger micro-batches take no less.
bool BaselineTrials::is_known_short(const PinnedPlan& pinned) {
  const auto known = short_of_memory_.find(pinned.method);
  const bool is_known = known != short_of_memory_.end() && pinned.micro_batches <= known->second;
  left_short_ += is_known;
  return is_known;
}

void BaselineTrials::note_left() const {
  if (left_short_ > 0)
    selection_.note_failure(count_text(left_short_, "other baseline"),
                            "do not fit with smaller micro-batches either");
  if (left_ > 0)
    selection_.note_failure(count_text(left_, "other baseline"),
                            fmt::format("{} a step at least", seconds_text(least_left_s_)));
}

double BaselineTrials::best_estimate_s(int micro_batches) const {
  const auto known = best_estimate_s_.find(micro_batches);
  return known == best_estimate_s_.end() ? infinity : known->second;
}

double BaselineTrials::most_s() const {
  return stage_effort(options_.effort).count_margin * selection_.best_estimate_s();
}

void BaselineTrials::leave_slow(std::vector<Bounded>& all) {
  std::erase_if(all, [&](const Bounded& each) {
    if (each.least_s <= most_s()) return false;
    ++left_;
    least_left_s_ = std::min(least_left_s_, each.least_s);
    return true;
  });
}

bool BaselineTrials::price_meshes(PricedGraph& graph, const std::vector<Bounded>& all,
                                  const std::string& name) {
  std::set<MeshShape> meshes;
  for (const Bounded& each : all)
    for (const StageRequest& request : each.pinned.stages) meshes.insert(request.mesh);
  clock_.begin(name + ": meshes priced", static_cast<int>(meshes.size()));
  return graph.book.price(
      {meshes.begin(), meshes.end()}, threads_, [&] { return !selection_.has_time(); },
      [&] { clock_.one_done(); });
}

std::vector<BaselineTrials::Trial> BaselineTrials::try_out(const PricedGraph& graph,
                                                           std::vector<PinnedPlan> pins,
                                                           double most_s) const {
  const int count = static_cast<int>(pins.size());
  std::vector<Trial> trials(pins.size());
  run_tasks(count, threads_, [&](int i) {
    PinnedPlan& pinned = trials[i].pinned = std::move(pins[i]);
    trials[i].outcome =
        selection_.try_out(graph,
                           {.requests = pinned.stages,
                            .solutions = {},
                            .stages_per_mesh = pinned.stages_per_mesh,
                            .transfers = stage_transfers(pinned, options_)},
                           pinned.method, first_schedule(pinned.schedule, pinned.stages_per_mesh), most_s,
                           std::max(1, threads_ / count));
  });
  return trials;
}

void BaselineTrials::enter(const PricedGraph& graph, Trial trial) {
  clock_.one_done();
  if (trial.outcome.shortfall.bytes > 0)
    short_of_memory_.try_emplace(trial.pinned.method, trial.pinned.micro_batches);
  const Proposal entered = selection_.enter(graph, std::move(trial.outcome),
                                            {trial.pinned.schedule, options_.method != "auto"}, threads_);
  if (entered.requests.empty()) return;
  double& best = best_estimate_s_.try_emplace(trial.pinned.micro_batches, infinity).first->second;
  best = std::min(best, entered.estimate_s);
}

}  // namespace alpa
