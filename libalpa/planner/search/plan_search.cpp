#include "libalpa/planner/search/plan_search.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/explain.h"
#include "libalpa/planner/search/baseline_trials.h"
#include "libalpa/planner/search/before_search.h"
#include "libalpa/planner/search/bound_coverage.h"
#include "libalpa/planner/search/left_out.h"
#include "libalpa/planner/search/offered_spaces.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/planner/search/plan_selection.h"
#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/priced_graphs.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/search_trials.h"
#include "libalpa/planner/search/stage_search.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr double kNoBaseline_s = 1e30;  ///< longer than any step

class PlanSearch {
 public:
  PlanSearch(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options, Log& log)
      : model_(model),
        costs_(costs),
        options_(options),
        log_(log),
        devices_(options.devices > 0 ? options.devices : costs.cluster().devices()),
        clock_(options.time_limit_s, log, options.stop),
        selection_(model, costs, options, devices_, clock_),
        baselines_(costs, options, selection_, clock_),
        graphs_(model, costs, options),
        offered_(options, costs.cluster()),
        trials_(costs, options, offered_, selection_, clock_, log) {}

  Plan run() {
    if (options_.pin)
      enter_pin();
    else
      enter_methods();
    if (!selection_.has_winner() && clock_.is_stopped())
      throw Error(ErrorKind::stopped_early, "no plan was found yet: " + left_out_.end_text(),
                  "more time; --method auto looks at baselines first");
    if (options_.compare_with_search && (options_.pin || !wants("search"))) search_beside();
    if (!selection_.has_winner() && left_out_.is_cut_short())
      throw OutOfTime(ErrorKind::infeasible, "no plan was found: " + left_out_.text(),
                      "a longer --time-limit, or --method auto, which looks at baselines first");
    baselines_.note_left();
    clock_.begin("the plan's timeline", 0);
    Plan plan = selection_.result();
    plan.prediction.hit_time_limit = selection_.out_of_time() || !left_out_.is_nothing();
    if (owner_rule(options_) != OwnerRule::none) {  // bounds are on plans whose devices make all updates
      plan.prediction.lower_bound_s = 0;
      plan.prediction.bound_covers = "";
    }
    const bool is_bounded =
        !options_.pin && owner_rule(options_) == OwnerRule::none && wants("search") && state_bound(plan);
    if (plan.prediction.hit_time_limit)
      log_.warning(fmt::format("{}. Of the best plan so far: {}{}", left_out_.text(),
                               gap_text(plan.prediction),
                               is_bounded ? "" : "; how far it is from the best of all plans is not known"));
    return plan;
  }

 private:
  bool wants(const std::string& method) const { return is_wanted(options_, method); }
  void enter_pin() {
    PinnedPlan pin = *options_.pin;
    if (pin.schedule == kAnySchedule) pin.schedule = options_.schedule;
    check_batch(model_, pin.micro_batches);
    check_pin(pin, graphs_.of(pin.micro_batches).graph, costs_.cluster().devices());
    if (pin.stages_per_mesh == 1 || pin.schedule != kAnySchedule)
      return baselines_.try_pinned(graphs_.of(pin.micro_batches), pin);
    // None of them holds least on every stage.
    for (const std::string& schedule : schedule_names(pin.stages_per_mesh)) {
      pin.schedule = schedule;
      baselines_.try_pinned(graphs_.of(pin.micro_batches), pin);
    }
  }

  void enter_methods() {
    const std::vector<int> counts = planned_micro_batches(model_, options_, costs_, devices_);
    const Graph& graph = graphs_.of(counts.front()).graph;
    refuse_what_cannot_fit(graph, options_, costs_.cluster(), devices_);
    offered_.cut(graph, devices_);
    std::vector<std::string> methods = baseline_names();
    if (options_.method == "auto") std::erase(methods, kFactorsMethod);  // comes later
    baselines(counts, methods);
    if (wants("search")) {
      search_all(counts);
      prove_all();
    }
    if (options_.method == "intra-only")
      for (const int count : counts) search(count, "intra-only", offered_.one_stage());
    if (options_.method == "inter-only")
      for (const int count : counts) search(count, "inter-only", offered_.one_device_each());
  }

  /// Many micro-batches first, with which most models are best.
  void baselines(std::vector<int> counts, const std::vector<std::string>& methods) {
    std::ranges::reverse(counts);
    for (std::span<const int> left = counts; !left.empty(); left = left.subspan(1)) {
      const bool are_done = selection_.has_time() &&
                            baselines_.try_all(graphs_.first_of(left), left.front(), devices_, methods);
      if (!are_done) left_out_.note("baselines", left.front());
    }
  }

  /// They are fast with few micro-batches, which says nothing of how many a pipeline had better have. Where
  /// no factors are small they are data parallelism.
  void baselines_of_factors(const std::vector<int>& counts) {
    if (options_.method == "auto" &&
        has_small_factors(graphs_.of(counts.front()).graph, counts.front(), devices_))
      baselines(counts, {kFactorsMethod});
  }

  /// On as many devices as the winner takes, which it need not beat: what it finds by itself is the question.
  void search_beside() {
    devices_ = selection_.freeze().devices();
    const std::vector<int> counts = planned_micro_batches(model_, options_, costs_, devices_);
    offered_.cut(graphs_.of(counts.front()).graph, devices_);
    search_all(counts);
  }

  /// Those first with which a baseline is fastest: what is found there shortens the search of the others.
  /// Then the neighbours of the fastest, until it is between slower ones: where no baseline fits, plans may.
  /// Wider spaces multiply the work, so they come once it is known what can be done without.
  void search_all(const std::vector<int>& counts) {
    std::vector<int> by_baseline = counts;
    std::ranges::stable_sort(by_baseline, {}, [&](int count) { return known_s(count); });
    const double least_s = known_s(by_baseline.front());
    const double most_s = stage_effort(options_.effort).count_margin * least_s;
    const int most_axes = mesh_axes(options_), first_axes = std::min(most_axes, 2);
    for (const int count : by_baseline) {
      if (known_s(count) > most_s && least_s < kNoBaseline_s)
        unsearched_.push_back(count);
      else
        search_any(count, first_axes);
      if (!open_.contains(count)) graphs_.erase(count);
    }
    baselines_of_factors(counts);
    while (const std::optional<int> count = unsearched_beside_fastest(counts)) {
      std::erase(unsearched_, *count);
      search_any(*count, first_axes);
    }
    if (offered_.mesh_count(most_axes) != offered_.mesh_count(first_axes))
      for (const int count : searched_by_found()) search_any(count, most_axes);
  }

  /// The least bound first: what cannot be raised further is enough for all others.
  void prove_all() {
    double enough_s = infinity;
    while (!open_.empty()) {
      const auto least =
          std::ranges::min_element(open_, {}, [](const auto& each) { return each.second.bound.step_s; });
      const auto& [count, open] = *least;
      prove(count, enough_s);
      if (open.bound.step_s > 0) enough_s = std::min(enough_s, open.bound.step_s);
      graphs_.erase(count);
      open_.erase(least);
    }
  }

  std::vector<int> searched_by_found() const {
    std::vector<int> counts = spaces_.counts();
    std::ranges::stable_sort(counts, {}, [&](int count) { return trials_.best_estimate_s(count); });
    return counts;
  }

  void search_any(int micro_batches, int axes) {
    search_within({axes, !offered_.leaves_selective_out()}, micro_batches);
    if (gains_by_selective(micro_batches)) search_within({axes, true}, micro_batches);
  }

  void search_within(const PlanSpace& within, int micro_batches) {
    StepBound& bound = spaces_.bound(within, micro_batches);
    open_.erase(micro_batches);  // it is part of this one
    if (std::unique_ptr<StageSearch> search =
            this->search(micro_batches, "search", better_within(within), &bound))
      open_.emplace(micro_batches, Open{within, std::move(search), bound});
  }

  /// The best so far, which has so many micro-batches, is much better with it.
  bool gains_by_selective(int micro_batches) const {
    return offered_.leaves_selective_out() &&
           trials_.selective_gain(micro_batches) > stage_effort(options_.effort).selective_gain &&
           trials_.best_estimate_s(micro_batches) <= selection_.best_estimate_s();
  }

  std::optional<int> unsearched_beside_fastest(const std::vector<int>& counts) const {
    const auto fastest = std::ranges::min_element(counts, {}, [&](int count) {
      return std::min(baselines_.best_estimate_s(count), trials_.best_estimate_s(count));
    });
    const auto begin = fastest == counts.begin() ? fastest : fastest - 1;
    const auto end = fastest + 1 == counts.end() ? fastest + 1 : fastest + 2;
    const auto found = std::find_if(
        begin, end, [&](int count) { return std::ranges::find(unsearched_, count) != unsearched_.end(); });
    return found == end ? std::nullopt : std::optional(*found);
  }

  /// Of the best baseline with so many micro-batches; where none fits, more come first.
  double known_s(int micro_batches) const {
    const double known = baselines_.best_estimate_s(micro_batches);
    return known < infinity ? known : kNoBaseline_s * (1 + 1.0 / micro_batches);
  }

  /// Of those, plans that are better than the best so far.
  SearchSpace better_within(const PlanSpace& within) const {
    SearchSpace any = offered_.any_stages(within);
    any.best_s = selection_.best_estimate_s();
    any.best_step_s = selection_.best_step_s();
    any.cutoff_s = any.near * any.best_s;
    return any;
  }

  /// Returns what may bound it further; null: nothing. `bound`: null, or what it shows of all the plans of
  /// the space.
  std::unique_ptr<StageSearch> search(int micro_batches, const std::string& method, SearchSpace space,
                                      StepBound* bound = nullptr) {
    if (!selection_.has_time()) return left_out_.note(space.name, micro_batches), nullptr;
    space = named(std::move(space), micro_batches);
    if (space.least_stages > space.most_stages || stage_sizes(space, costs_.cluster()).empty()) {
      if (bound) *bound = {};
      selection_.note_failure(space.name, "the constraints leave no stages for it");
      return nullptr;
    }
    const bool is_uniform = costs_.cluster().parts.empty();  // else stages may be faster where they lie
    if (!is_uniform) space.cutoff_s = space.best_s = space.best_step_s = infinity;
    PricedGraph& graph = graphs_.of(micro_batches);
    auto search = std::make_unique<StageSearch>(graph.planning, space, graph.book, clock_);
    SearchOutcome found = search->search();
    if (found.out_of_time) left_out_.note_cut_short();
    if (bound && is_uniform) take_bound(found, *bound);
    log_.debug(fmt::format("{}: {} proposals", space.name, found.proposals.size()));
    if (found.proposals.empty() && found.shortfall.bytes > 0)
      selection_.note_shortfall(space.name, found.shortfall);
    if (found.on_shared_meshes.empty() && found.proposals.empty() && !may_have(options_.schedule, 1))
      selection_.note_failure(space.name,
                              "no stages that share meshes fit, or may be faster than the best plan");
    trials_.try_all(std::move(found.proposals), graph, space, method);
    trials_.try_shared(std::move(found.on_shared_meshes), graph, method + " on shared meshes");
    return search;
  }

  /// The bound on the widest space that was searched with so many micro-batches, now that the best of all is
  /// known.
  void prove(int micro_batches, double enough_s) {
    if (!selection_.has_time()) return left_out_.note("bounds", micro_batches);
    const auto& [within, search, bound] = open_.at(micro_batches);
    const SearchSpace space = named(better_within(within), micro_batches);
    SearchOutcome found = costs_.cluster().parts.empty()
                              ? search->prove(space.best_s, space.best_step_s, enough_s)
                              : proved_on_fastest(space, enough_s);
    if (found.out_of_time) left_out_.note_cut_short();
    take_bound(found, bound);
    trials_.try_all(std::move(found.proposals), graphs_.of(micro_batches), space, "search");
  }

  static SearchSpace named(SearchSpace space, int micro_batches) {
    space.micro_batches = micro_batches;
    space.name = fmt::format("{}, {}", space.name, count_text(micro_batches, "micro-batch"));
    return space;
  }

  void take_bound(const SearchOutcome& found, StepBound& bound) {
    bound = {found.lower_bound_s, found.bound_of_first_s, found.work_bound_s};
    if (const double least_s = least_bound(spaces_.widest()).step_s; least_s < infinity)
      clock_.bounded(least_s);
  }

  /// The search prices a stage as if it lay on the slowest of a cluster's parts, so that it may lie anywhere.
  /// A bound has to hold where it lies on the fastest.
  SearchOutcome proved_on_fastest(const SearchSpace& space, double enough_s) {
    const CostModel fastest = costs_.extrapolated(best_of_parts(costs_.cluster()));
    const std::unique_ptr<PricedGraph> graph = graphs_.build(space.micro_batches, fastest);
    StageSearch search(graph->planning, space, graph->book, clock_);
    SearchOutcome found = search.search();
    if (!found.out_of_time) found = search.prove(space.best_s, space.best_step_s, enough_s);
    found.proposals.clear();  // they take longer where they lie
    return found;
  }

  /// The search bounds the plans of the micro-batch counts that it came to; false where the plan is none of
  /// them.
  bool state_bound(Plan& plan) const {
    const std::vector<SpaceBounds> spaces = spaces_.widest();
    const StepBound known = least_bound(spaces);
    // Others are of steps whose communication takes turns with computation, and of stages with own meshes.
    const bool by_work = overlap(options_) != Overlap::none || plan.meshes.size() < plan.stages.size() ||
                         !may_have(options_.schedule, 1) || may_defer_updates(options_);
    const double bound_s = by_work ? known.work_s : known.step_s;
    const bool is_covered = std::ranges::any_of(
        spaces, [&](const SpaceBounds& of) { return of.of_count.contains(plan.micro_batches); });
    if (!is_covered || bound_s == infinity) return false;
    // A baseline may be none of the plans that were searched, and better than they can be.
    plan.prediction.lower_bound_s = std::min(bound_s, plan.prediction.step_s);
    plan.prediction.bound_covers = coverage_text(spaces, offered_.any_stages(spaces.front().space),
                                                 costs_.cluster().devices_per_node, by_work);
    if (!options_.constraints.empty()) plan.prediction.bound_covers += ", that meets the constraints";
    if (!unsearched_.empty())
      plan.prediction.bound_covers +=
          fmt::format(" (--effort thorough looks at {} micro-batches too)", fmt::join(unsearched_, ", "));
    return true;
  }

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  Log& log_;
  int devices_;
  PlanningClock clock_;
  PlanSelection selection_;
  BaselineTrials baselines_;
  PricedGraphs graphs_;
  OfferedSpaces offered_;
  SearchTrials trials_;
  SearchedSpaces spaces_;
  /// What may be bounded further.
  struct Open {
    PlanSpace within;
    std::unique_ptr<StageSearch> search;
    StepBound& bound;
  };
  std::map<int, Open> open_;     ///< by micro-batches; its prices are those of graphs_
  std::vector<int> unsearched_;  ///< micro-batches that the effort leaves out
  LeftOut left_out_{clock_};
};

}  // namespace

Plan search_plan(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options,
                 Log& log) {
  check_constraints(options, model, costs.cluster());
  const PlannerOptions narrowed = within_constraints(options);
  return PlanSearch(model, costs, narrowed, log).run();
}

}  // namespace alpa
