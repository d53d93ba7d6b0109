#include "libalpa/planner/search/plan_search.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ranges>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/plan/explain.h"
#include "libalpa/planner/search/baseline_trials.h"
#include "libalpa/planner/search/even_stages.h"
#include "libalpa/planner/search/layer_clustering.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/planner/search/plan_selection.h"
#include "libalpa/planner/search/planning_clock.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/space_bounds.h"
#include "libalpa/planner/search/stage_search.h"

namespace alpa {
namespace {

/// The dynamic program looks at the square of their number, on every number of devices.
constexpr int kMostClusters = 128;

constexpr double kNoBaseline_s = 1e30;  ///< longer than any step

class PlanSearch {
 public:
  PlanSearch(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options, Log& log)
      : model_(model),
        costs_(costs),
        options_(options),
        log_(log),
        devices_(options.devices > 0 ? options.devices : costs.cluster().devices()),
        schedule_(options.schedule),
        clock_(options.time_limit_s, log, options.stop),
        selection_(model, costs, options, devices_, clock_),
        baselines_(costs, options, selection_, clock_) {}

  Plan run() {
    if (options_.pin)
      enter_pin();
    else
      enter_methods();
    if (!selection_.has_winner() && clock_.is_stopped())
      throw Error(ErrorKind::stopped_early, "no plan was found yet: " + end_of_search(),
                  "more time; --method auto looks at baselines first");
    if (options_.compare_with_search && (options_.pin || !wants("search"))) search_beside();
    if (!selection_.has_winner() && out_of_time_)
      throw OutOfTime(ErrorKind::infeasible, "no plan was found: " + what_is_missing(),
                      "a longer --time-limit, or --method auto, which looks at baselines first");
    clock_.begin("the plan's timeline", 0);
    Plan plan = selection_.result();
    plan.prediction.hit_time_limit = selection_.out_of_time() || out_of_time_ || !left_out_.empty();
    const bool is_bounded = !options_.pin && wants("search") && state_bound(plan);
    if (plan.prediction.hit_time_limit)
      log_.warning(fmt::format("{}. Of the best plan so far: {}{}", what_is_missing(),
                               gap_text(plan.prediction),
                               is_bounded ? "" : "; how far it is from the best of all plans is not known"));
    return plan;
  }

 private:
  bool wants(const std::string& method) const { return is_wanted(options_, method); }
  void enter_pin() {
    PinnedPlan pin = *options_.pin;
    if (pin.schedule == kAnySchedule) pin.schedule = schedule_;
    check_batch(pin.micro_batches);
    check_pin(pin, priced(pin.micro_batches).graph, costs_.cluster().devices());
    baselines_.try_pinned(priced(pin.micro_batches), pin);
  }

  void enter_methods() {
    const std::vector<int> counts = micro_batch_counts();
    const Graph& graph = priced(counts.front()).graph;
    refuse_states_that_cannot_fit(graph);
    cluster_layers(graph);
    baselines(counts);
    if (wants("search")) {
      search_all(counts);
      prove_all();
    }
    if (options_.method == "intra-only")
      for (const int count : counts) search(count, "intra-only", one_stage());
    if (options_.method == "inter-only")
      for (const int count : counts) search(count, "inter-only", one_device_each());
  }

  /// Many micro-batches first, with which most models are best.
  void baselines(const std::vector<int>& counts) {
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      const bool are_done = has_time() && baselines_.try_all(priced(*count), *count, devices_);
      if (!are_done) note_left_out("baselines", *count);
    }
    baselines_.note_left();
  }

  /// What lasts from step to step is somewhere, whatever the plan.
  void refuse_states_that_cannot_fit(const Graph& graph) const {
    std::int64_t parameters = 0, bytes = 0;
    for (const State& state : graph.states) {
      const std::int64_t own = byte_count(value_of(graph, state.value).type);
      bytes += own;
      if (state.is_parameter) parameters += own;
    }
    const std::int64_t limit = best_of_parts(costs_.cluster()).memory_bytes;
    if (bytes / devices_ <= limit) return;
    throw Error(
        ErrorKind::infeasible,
        fmt::format("no plan fits: parameters take {} and the optimizer's states {}, {} on each of {} at "
                    "least, {} is there: {} short",
                    bytes_text(parameters), bytes_text(bytes - parameters), bytes_text(bytes / devices_),
                    count_text(devices_, "device"), bytes_text(limit), bytes_text(bytes / devices_ - limit)),
        fmt::format("{} or more, with room for gradients and activations beside; or an optimizer with fewer "
                    "states (adafactor)",
                    count_text(bytes / limit + 1, "device")));
  }

  /// On as many devices as the winner takes, which it need not beat: what it finds by itself is the question.
  void search_beside() {
    devices_ = selection_.freeze().devices();
    const std::vector<int> counts = micro_batch_counts();
    cluster_layers(priced(counts.front()).graph);
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
      if (!open_.contains(count)) graphs_.erase(count);  // its prices take the most of what planning holds
    }
    while (const std::optional<int> count = unsearched_beside_fastest(counts)) {
      std::erase(unsearched_, *count);
      search_any(*count, first_axes);
    }
    if (mesh_count(most_axes) != mesh_count(first_axes))
      for (const int count : searched_by_found()) search_any(count, most_axes);
  }

  void prove_all() {
    for (const int count : searched_by_found()) {
      prove(count);
      open_.erase(count);
      graphs_.erase(count);
    }
  }

  std::vector<int> searched_by_found() const {
    std::vector<int> counts = spaces_.counts();
    std::ranges::stable_sort(counts, {}, [&](int count) { return found_s(count); });
    return counts;
  }

  void search_any(int micro_batches, int axes) {
    search_within({axes, !leaves_selective_out()}, micro_batches);
    if (gains_by_selective(micro_batches)) search_within({axes, true}, micro_batches);
  }

  void search_within(const PlanSpace& within, int micro_batches) {
    StepBound& bound = spaces_.bound(within, micro_batches);
    open_.erase(micro_batches);  // it is part of this one
    if (std::unique_ptr<StageSearch> search =
            this->search(micro_batches, "search", any_stages(within), &bound))
      open_.emplace(micro_batches, Open{within, std::move(search), bound});
  }

  /// The best so far, which has so many micro-batches, is much better with it.
  bool gains_by_selective(int micro_batches) const {
    const auto found = found_.find(micro_batches);
    return leaves_selective_out() && found != found_.end() &&
           found->second.selective_gain > stage_effort(options_.effort).selective_gain &&
           found->second.estimate_s <= selection_.best_estimate_s();
  }

  std::size_t mesh_count(int axes) const { return stage_meshes(any_stages({axes}), costs_.cluster()).size(); }

  std::optional<int> unsearched_beside_fastest(const std::vector<int>& counts) const {
    const auto fastest = std::ranges::min_element(
        counts, {}, [&](int count) { return std::min(baselines_.best_estimate_s(count), found_s(count)); });
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

  /// Of what was searched with so many micro-batches.
  double found_s(int micro_batches) const {
    const auto found = found_.find(micro_batches);
    return found == found_.end() ? infinity : found->second.estimate_s;
  }

  void check_batch(int micro_batches) const {
    if (model_.batch % (micro_batches * model_.group_samples) == 0) return;
    const std::string groups =
        model_.group_samples > 1 ? fmt::format(" of whole groups of {} samples", model_.group_samples) : "";
    throw Error(ErrorKind::usage,
                fmt::format("a batch of {} does not divide into {} micro-batches{}", model_.batch,
                            micro_batches, groups),
                groups.empty() ? "a divisor of the batch" : "a divisor of the number of groups");
  }

  std::vector<int> micro_batch_counts() const {
    if (options_.micro_batches > 0) {
      check_batch(options_.micro_batches);
      return {options_.micro_batches};
    }
    if (std::vector<int> allowed = allowed_micro_batches(options_.constraints); !allowed.empty())
      return allowed;
    const std::int64_t groups = model_.batch / model_.group_samples;
    return alpa::micro_batch_counts(groups,
                                    costs_.is_measured() ? most_profiled_micro_batches(devices_) : groups);
  }

  void cluster_layers(const Graph& graph) {
    const int layers = static_cast<int>(graph.layers.size());
    if (options_.layers > layers)
      throw Error(
          ErrorKind::usage,
          fmt::format("{} clusters of layers asked for, the model has {} layers", options_.layers, layers),
          fmt::format("--layers {} or fewer; 0 leaves it to the planner", layers));
    const int clusters = options_.layers > 0 ? options_.layers : std::min(layers, kMostClusters);
    allowed_ = SearchSpace{};
    allowed_.cuts = cluster_chain(layer_chain(graph), clusters);
    narrow(allowed_, options_.constraints, graph);
  }

  PricedGraph& priced(int micro_batches) {
    auto& known = graphs_[micro_batches];
    if (!known)
      known = std::make_unique<PricedGraph>(model_.graph(model_.batch / micro_batches), costs_,
                                            options_.constraints);
    return *known;
  }

  /// What there is no time for is left out, once there is a plan or a stop was asked for.
  bool has_time() const { return !clock_.is_over() || (!selection_.has_winner() && !clock_.is_stopped()); }

  void note_left_out(const std::string& part, int micro_batches) {
    if (cut_at_.empty()) cut_at_ = clock_.where();
    left_out_[part].push_back(micro_batches);
  }

  SearchSpace space() const {
    SearchSpace space = allowed_;
    space.devices = devices_;
    space.schedule = schedule_;
    space.rematerialize = layer_forms(!leaves_selective_out());
    static_cast<StageEffort&>(space) = stage_effort(options_.effort);
    space.mesh_axes = mesh_axes(options_);
    space.cache = options_.cache;
    space.threads = thread_count(options_.threads);
    return space;
  }
  /// What becomes of what a layer made.
  std::vector<LayerForm> layer_forms(bool is_selective_too) const {
    switch (options_.rematerialize) {
      case Rematerialize::never:
        return {std::nullopt};
      case Rematerialize::always:
        return {RecomputeForm::full};
      case Rematerialize::selective:
        return {RecomputeForm::selective};
      case Rematerialize::automatic:
        break;
    }
    if (!is_selective_too) return {std::nullopt, RecomputeForm::full};
    return {std::nullopt, RecomputeForm::full, RecomputeForm::selective};
  }
  /// It may be had, but is first only tried on what is found without.
  bool leaves_selective_out() const {
    return options_.rematerialize == Rematerialize::automatic &&
           stage_effort(options_.effort).selective_gain > 0;
  }
  SearchSpace one_stage() const {
    SearchSpace one = space();
    one.most_stages = std::min(one.most_stages, 1);
    return one;
  }
  SearchSpace one_device_each() const {
    SearchSpace each = space();
    each.single_devices = true;
    each.least_stages = std::max(each.least_stages, devices_);
    return each;
  }
  SearchSpace any_stages(const PlanSpace& within) const {
    SearchSpace any = space();
    any.name = std::string("search") + (within.mesh_axes > 2 ? " on three axes" : "") +
               (within.is_selective && leaves_selective_out() ? " with selective recomputation" : "");
    any.mesh_axes = within.mesh_axes;
    any.rematerialize = layer_forms(within.is_selective);
    any.best_s = selection_.best_estimate_s();
    any.best_step_s = selection_.best_step_s();
    any.cutoff_s = any.near * any.best_s;
    return any;
  }

  /// Returns what may bound it further; null: nothing. `bound`: null, or what it shows of all the plans of
  /// the space.
  std::unique_ptr<StageSearch> search(int micro_batches, const std::string& method, SearchSpace space,
                                      StepBound* bound = nullptr) {
    const std::string part = space.name.empty() ? method : space.name;
    if (!has_time()) return note_left_out(part, micro_batches), nullptr;
    space.name = fmt::format("{}, {}", part, count_text(micro_batches, "micro-batch"));
    if (space.least_stages > space.most_stages || stage_sizes(space, costs_.cluster()).empty()) {
      if (bound) *bound = {};
      selection_.note_failure(space.name, "the constraints leave no stages for it");
      return nullptr;
    }
    space.micro_batches = micro_batches;
    if (!costs_.cluster().parts.empty())
      space.cutoff_s = space.best_s = space.best_step_s = infinity;  // where they lie, stages may be faster
    PricedGraph& graph = priced(micro_batches);
    auto search = std::make_unique<StageSearch>(graph.planning, space, graph.book, clock_);
    SearchOutcome found = search->search();
    note_bound(found, bound);
    if (found.proposals.empty() && found.shortfall.bytes > 0)
      selection_.note_shortfall(space.name, found.shortfall);
    enter(std::move(found.proposals), graph, space, method);
    return search;
  }

  /// The bound on the widest space that was searched with so many micro-batches, now that the best of all is
  /// known.
  void prove(int micro_batches) {
    const auto at = open_.find(micro_batches);
    if (at == open_.end() || !has_time()) return;
    const Open& open = at->second;
    SearchSpace space = any_stages(open.within);
    space.micro_batches = micro_batches;
    space.name = fmt::format("{}, {}", space.name, count_text(micro_batches, "micro-batch"));
    PricedGraph& graph = priced(micro_batches);
    if (costs_.cluster().parts.empty()) {
      SearchOutcome found = open.search->prove(space.best_s, space.best_step_s);
      note_bound(found, &open.bound);
      enter(std::move(found.proposals), graph, space, "search");
    } else {
      bound_on_fastest(space, open.bound);
    }
  }

  void note_bound(const SearchOutcome& found, StepBound* bound) {
    out_of_time_ |= found.out_of_time;
    if (found.out_of_time && cut_at_.empty()) cut_at_ = clock_.where();
    if (!bound) return;
    // That of a cluster whose nodes differ is of stages on its slowest.
    *bound = costs_.cluster().parts.empty() ? StepBound{found.lower_bound_s, found.bound_of_first_s}
                                            : StepBound{0, 0};
    if (const double least_s = least_bound(spaces_.widest()).step_s; 0 < least_s && least_s < infinity)
      clock_.bounded(least_s);
  }

  void enter(std::vector<Proposal> proposals, const PricedGraph& graph, const SearchSpace& space,
             const std::string& method) {
    log_.debug(fmt::format("{}: {} proposals", space.name, proposals.size()));
    if (proposals.empty()) return;
    clock_.begin(space.name + ": plans lowered", static_cast<int>(proposals.size()));
    int wanted = stage_effort(options_.effort).simulated;
    if (!costs_.cluster().parts.empty())
      wanted *= 4;  // what they are worth where they lie is not known before
    for (Proposal& proposal : proposals) {
      if (wanted == 0) break;
      const Proposal entered = try_out(graph, std::move(proposal), method);
      if (!entered.requests.empty()) --wanted;  // others may fit where this one did not
      if (!costs_.cluster().parts.empty()) even_out(graph, space, entered, method);
      const bool is_selective =
          std::ranges::find(space.rematerialize, RecomputeForm::selective) != space.rematerialize.end();
      if (leaves_selective_out() && !is_selective && entered.estimate_s <= selection_.best_estimate_s())
        try_selective(graph, entered, method);
      clock_.one_done();
    }
  }

  Proposal try_out(const PricedGraph& graph, Proposal proposal, const std::string& method) {
    const double estimate = proposal.estimate_s;
    const int threads = thread_count(options_.threads);
    ProposalTrial trial =
        selection_.try_out(graph, std::move(proposal), method, first_schedule(schedule_), infinity, threads);
    const Proposal entered = selection_.enter(graph, std::move(trial), {schedule_}, threads);
    if (!entered.requests.empty()) {
      double& found_s = found_[entered.requests.front().micro_batches].estimate_s;
      found_s = std::min(found_s, entered.estimate_s);
    }
    log_.debug(fmt::format("  {} stages: estimated {}, then {}", entered.requests.size(),
                           seconds_text(estimate), seconds_text(entered.estimate_s)));
    return entered;
  }

  /// With selective recomputation of all layers of the stages that recompute some fully: where that suffices
  /// it may be faster.
  void try_selective(const PricedGraph& graph, Proposal entered, const std::string& method) {
    bool recomputes = false;
    for (std::size_t s = 0; s < entered.requests.size(); ++s) {
      StageRequest& request = entered.requests[s];
      if (request.recomputed_layers == 0) continue;
      recomputes = true;
      request.recomputed_layers = request.end_layer - request.first_layer;
      request.recompute_form = RecomputeForm::selective;
      entered.solutions[s] = {};
    }
    if (!recomputes || !has_time()) return;
    const double fully_s = entered.estimate_s;
    const Proposal tried = try_out(graph, std::move(entered), method);
    if (tried.requests.empty()) return;
    double& gain = found_[tried.requests.front().micro_batches].selective_gain;
    gain = std::max(gain, 1 - tried.estimate_s / fully_s);
  }

  /// Where nodes differ: with the layers cut anew, by what the stages took where they lie, until they are as
  /// even as can be.
  void even_out(const PricedGraph& graph, const SearchSpace& space, Proposal entered,
                const std::string& method) {
    constexpr int rounds = 3;
    for (int round = 0; round < rounds && !entered.requests.empty() && has_time(); ++round) {
      Proposal evened{evened_out(graph.planning, graph.book, space, entered), {}, 0};
      if (std::ranges::equal(evened.requests, entered.requests, {}, &StageRequest::first_layer,
                             &StageRequest::first_layer))
        return;
      entered = try_out(graph, std::move(evened), method);
    }
  }

  /// The search prices a stage as if it lay on the slowest of a cluster's parts, so that it may lie anywhere.
  /// A bound has to hold where it lies on the fastest.
  void bound_on_fastest(const SearchSpace& space, StepBound& bound) {
    const CostModel fastest = costs_.extrapolated(best_of_parts(costs_.cluster()));
    PricedGraph graph(model_.graph(model_.batch / space.micro_batches), fastest, options_.constraints);
    StageSearch search(graph.planning, space, graph.book, clock_);
    const SearchOutcome found = search.search();
    const SearchOutcome best = found.out_of_time ? found : search.prove(space.best_s, space.best_step_s);
    out_of_time_ |= best.out_of_time;
    bound = {best.lower_bound_s, best.bound_of_first_s};
  }

  /// The search bounds the plans of the micro-batch counts that it came to; false where the plan is none of
  /// them.
  bool state_bound(Plan& plan) const {
    const std::vector<SpaceBounds> spaces = spaces_.widest();
    const StepBound known = least_bound(spaces);
    std::vector<std::string> covered;
    bool is_covered = false;
    for (const auto& [space, bounds] : spaces) {
      is_covered |= bounds.contains(plan.micro_batches);
      covered.push_back(fmt::format("of {} micro-batches{}{}", fmt::join(std::views::keys(bounds), ", "),
                                    space.mesh_axes < spaces.front().space.mesh_axes
                                        ? " on meshes of " + axes_text(space.mesh_axes)
                                        : "",
                                    space.is_selective ? "" : " without selective recomputation"));
    }
    if (!is_covered || known.step_s == infinity) return false;
    // A baseline may be none of the plans that were searched, and better than they can be.
    plan.prediction.lower_bound_s = std::min(known.step_s, plan.prediction.step_s);
    plan.prediction.bound_covers = fmt::format(
        "every plan {}, cut into stages between {} clusters of layers, {}, {}{}{}", fmt::join(covered, ", "),
        allowed_.cuts.size() - 1, meshes_text(spaces.front().space.mesh_axes), schedules_text(known),
        options_.constraints.empty() ? "" : ", that meets the constraints",
        unsearched_.empty() ? ""
                            : fmt::format(" (--effort thorough looks at {} micro-batches too)",
                                          fmt::join(unsearched_, ", ")));
    return true;
  }

  static std::string axes_text(int axes) {
    return axes == 1 ? "one axis" : fmt::format("up to {} axes", axes == 2 ? "two" : "three");
  }

  std::string meshes_text(int axes) const {
    const int nodes = devices_ / costs_.cluster().devices_per_node;
    const bool doubling = stage_effort(options_.effort).doubling_sizes && nodes > 2;
    return fmt::format("on submeshes of {}{}{}", axes_text(axes),
                       axes > 1 && nodes > 1 ? " of which all but the first stay within a node" : "",
                       doubling ? ", of 1, 2, 4, 8 ... or all nodes" : "");
  }

  /// What is said of one schedule alone, if that is more.
  std::string schedules_text(const StepBound& known) const {
    constexpr double same = 1 + 1e-4;
    if (schedule_ != kAnySchedule) return "under schedule " + schedule_;
    return "under any schedule" +
           (known.of_first_s <= same * known.step_s
                ? ""
                : fmt::format(" (under {} alone {} at least)", first_schedule(schedule_),
                              seconds_text(known.of_first_s)));
  }

  std::string end_of_search() const { return clock_.end() + (cut_at_.empty() ? "" : " in: " + cut_at_); }

  std::string what_is_missing() const {
    std::string text = end_of_search();
    const char* lead = "; left out: ";
    for (const auto& [part, counts] : left_out_) {
      text += lead + part + fmt::format(" with {} micro-batches", fmt::join(counts, ", "));
      lead = "; ";
    }
    return text;
  }

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  Log& log_;
  int devices_;
  std::string schedule_;
  PlanningClock clock_;
  PlanSelection selection_;
  BaselineTrials baselines_;
  std::map<int, std::unique_ptr<PricedGraph>> graphs_;  ///< by micro-batches
  SearchSpace allowed_;                                 ///< cuts of layers, and what constraints say
  SearchedSpaces spaces_;
  struct Found {
    double estimate_s = infinity;
    double selective_gain = 0;  ///< what trying selective recomputation gained, of what it was tried on
  };
  /// What may be bounded further.
  struct Open {
    PlanSpace within;
    std::unique_ptr<StageSearch> search;
    StepBound& bound;
  };
  std::map<int, Open> open_;     ///< by micro-batches; its prices are those of graphs_
  std::map<int, Found> found_;   ///< the fastest that the search found, by micro-batches
  std::vector<int> unsearched_;  ///< micro-batches that the effort leaves out
  bool out_of_time_ = false;
  std::string cut_at_;                                ///< what was being done when the time was over
  std::map<std::string, std::vector<int>> left_out_;  ///< what there was no time for: micro-batches of it
};

}  // namespace

Plan search_plan(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options,
                 Log& log) {
  check_constraints(options, model, costs.cluster());
  const PlannerOptions narrowed = within_constraints(options);
  return PlanSearch(model, costs, narrowed, log).run();
}

}  // namespace alpa
