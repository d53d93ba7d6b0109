#include "libalpa/planner/search/stage_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/search/fastest_ways.h"
#include "libalpa/planner/search/pipeline_bounds.h"
#include "libalpa/planner/search/proposals.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/shared_mesh_proposals.h"
#include "libalpa/planner/search/solved_stages.h"
#include "libalpa/planner/search/stage_partition.h"

namespace alpa {
namespace {

/// Slowest stages that the partition takes for equal, and where there are many layers.
constexpr double kAlike = 1e-4, kAlikeOfMany = 5e-3;
constexpr int kManyUnits = 16;

/// Estimates may be that many times what solving finds.
constexpr double kEstimatesAbove = 1.04;

/// Of a pipeline that may be better than the best: its slowest stages show soonest that it is not.
constexpr std::size_t kSolvedAtOnce = 2;

/// Of a bound: work that raises it by less was in vain.
constexpr double kRaised = 1e-5;

std::vector<int> every_layer(const Graph& graph) {
  std::vector<int> cuts(graph.layers.size() + 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  return cuts;
}

}  // namespace

class StageSearch::State {
 public:
  State(const PlanningGraph& planning, const SearchSpace& space, const CostTable& book, PlanningClock& clock)
      : space_(space),
        clock_(clock),
        cluster_(book.costs().cluster()),
        sizes_(stage_sizes(space, cluster_)),
        places_(space.devices, cluster_.devices_per_node),
        spans_(planning.classes, space.cuts.empty() ? every_layer(planning.graph()) : space.cuts, sizes_,
               space.devices, space.needed_cuts),
        forms_(forms_of(schedules_of(space.schedule))),
        most_estimate_s_(kEstimatesAbove * space.cutoff_s),
        alike_(spans_.units() > kManyUnits ? kAlikeOfMany : kAlike),
        work_(planning, book, sizes_, cluster_.devices_per_node, space.mesh_axes),
        modes_(planning, book, spans_, stage_meshes(space, cluster_), space.rematerialize,
               {space.micro_batches, std::ranges::max(form().in_flight),
                std::min(space.cutoff_s, space.best_step_s), space.threads, space.name, space.cache}),
        solver_(planning, space_, book, spans_, modes_, clock, std::ranges::max(form().in_flight)),
        solved_(spans_, modes_, space.micro_batches) {}

  SearchOutcome search() {
    const auto at_least = [&](double seconds) {
      outcome_.lower_bound_s = std::min(space_.cutoff_s, std::max(outcome_.lower_bound_s, seconds));
      outcome_.bound_of_first_s = outcome_.lower_bound_s;
    };
    outcome_.work_bound_s = space_.micro_batches * work_.rest_s(0, 0, space_.devices);
    at_least(outcome_.work_bound_s);
    outcome_.out_of_time = !modes_.find_bounds(clock_);
    if (outcome_.out_of_time) return take_outcome();
    const bool has_several = std::min(space_.most_stages, space_.devices) > 1;
    if (has_several && !may_have(space_.schedule, 1)) return search_shared();
    at_least(modes_.least_pipeline_s());
    if (space_.best_step_s < infinity) at_least(bounds()->least(space_.best_step_s).first.seconds);
    if (outcome_.lower_bound_s >= std::min(space_.cutoff_s, space_.best_step_s)) return take_outcome();
    outcome_.out_of_time = !modes_.find_templates(clock_);
    propose_shared();
    estimate();
    improve();
    best_s_ = space_.best_s;
    for (const Partition& partition : partitions_) best_s_ = std::min(best_s_, partition.seconds);
    bounds_ = bounds();
    solve_better();
    // Stages that are solved for bounds are as good for what is near the best.
    if (space_.proposals > 0) raise_bounds(best_s_, infinity);
    propose();
    return take_outcome();
  }

  SearchOutcome prove(double best_estimate_s, double best_step_s, double enough_s) {
    if (!bounds_) return take_outcome();
    best_s_ = std::min(best_s_, best_estimate_s);
    partitions_.clear();
    const double wanted_s = std::min(enough_s, best_step_s * (1 - space_.proved_gap));
    best_step_s = std::min(best_s_, best_step_s);
    raise_bounds(best_step_s, wanted_s);
    outcome_.bound_of_first_s = std::max(outcome_.bound_of_first_s, bounds_->bound_of_first(best_step_s));
    outcome_.lower_bound_s = std::max(outcome_.lower_bound_s, bounds_->bound_of_all(best_step_s));
    outcome_.out_of_time |= clock_.is_long_over();
    if (!partitions_.empty())
      if (Proposal best = proposals_.of(partitions_.back()); best.estimate_s < space_.cutoff_s)
        outcome_.proposals.push_back(std::move(best));
    return take_outcome();
  }

 private:
  int first_layer(const StageSpan& span) const { return spans_.first_layer(span); }
  int end_layer(const StageSpan& span) const { return spans_.end_layer(span); }

  /// The first is the one that stages are searched for under.
  std::vector<PipelineForm> forms_of(const std::vector<std::string>& schedules) const {
    const int most_stages = std::min({space_.most_stages, spans_.units(), space_.devices});
    std::vector<PipelineForm> forms;
    for (const std::string& schedule : schedules)
      forms.push_back(form_of(schedule, space_.micro_batches, most_stages));
    return forms;
  }
  /// Where no others are asked for.
  SearchOutcome search_shared() {
    outcome_.out_of_time = !modes_.find_templates(clock_);
    propose_shared();
    return take_outcome();
  }
  void propose_shared() {
    if (!clock_.is_long_over())
      outcome_.on_shared_meshes = shared_mesh_proposals(space_, spans_, modes_, cluster_, most_estimate_s_);
  }
  const PipelineForm& form() const { return forms_.front(); }
  /// By what is known by now.
  std::unique_ptr<PipelineBounds> bounds() {
    return std::make_unique<PipelineBounds>(space_, spans_, modes_, work_, solved_, solver_,
                                            FloorChoices{spans_.units(), places_, sizes_}, forms_,
                                            outcome_.lower_bound_s, clock_, filling_);
  }
  StageChoices no_choices() const { return {spans_.units(), likely_places_, sizes_, form().in_flight}; }
  StageChoices corrected() const { return solved_.choices(estimated_); }
  std::vector<Partition> partitions_of(const StageChoices& choices) const {
    return best_partitions(choices, space_.least_stages, alike_, filling_);
  }

  void estimate() {
    const std::vector<StageSpan>& spans = spans_.all();
    run_tasks(static_cast<int>(spans.size()), space_.threads, [&](int i) {
      const StageSpan& span = spans[i];
      if (clock_.is_long_over()) return;
      FastestWays fastest(form().in_flight);
      modes_.for_each_way(span, [&](const StageWay& way) { fastest.add(way); });
      for (const StageSides& sides :
           places_.all_sides(span.devices, span.first_unit == 0, span.end_unit == spans_.units()))
        for (StageWay way : fastest.all()) {
          way.seconds = way.seconds + modes_.arrivals(span, sides);
          estimated_.offer(span.first_unit, span.end_unit, span.devices, sides, way);
        }
    });
  }

  SearchOutcome take_outcome() {
    SearchOutcome taken = outcome_;
    outcome_.proposals.clear();
    outcome_.on_shared_meshes.clear();
    return taken;
  }

  /// Partitions by estimates, of which the best's stages are solved until it has none that is not.
  void improve() {
    for (;;) {
      clock_.begin(space_.name + ": stages put together", 0);
      partitions_ = partitions_of(corrected());
      if (partitions_.empty()) {
        if (outcome_.shortfall.bytes == 0)
          outcome_.shortfall = least_shortfall(spans_, modes_.estimates(), cluster_.memory_bytes);
        return;
      }
      const Partition& best = *std::ranges::min_element(partitions_, {}, &Partition::seconds);
      if (best.seconds >= most_estimate_s_ || !solve_stages_of(stages_of(best), most_estimate_s_)) return;
    }
  }

  /// The best for each number of stages first, as they differ most; then what is near the best of all.
  void propose() {
    std::vector<Partition>& partitions = partitions_;
    std::erase_if(partitions,
                  [&](const Partition& partition) { return partition.seconds >= most_estimate_s_; });
    if (partitions.empty()) return;
    const auto best_s = [](const auto& all, auto seconds) {
      return std::ranges::min_element(all, {}, seconds)[0].*seconds;
    };
    const auto differ = std::ssize(partitions);
    if (space_.proposals > 0) {
      const double most_s = std::min(most_estimate_s_, space_.near * best_s(partitions, &Partition::seconds));
      for (Partition& near : near_partitions(corrected(), space_.least_stages, most_s,
                                             static_cast<std::size_t>(space_.proposals), filling_))
        if (std::ranges::find(partitions, near) == partitions.end()) partitions.push_back(std::move(near));
    }
    std::vector<Proposal>& proposals = outcome_.proposals;
    for (const Partition& partition : partitions) proposals.push_back(proposals_.of(partition));
    for (const auto& [begin, end] : {std::pair{proposals.begin(), proposals.begin() + differ},
                                     std::pair{proposals.begin() + differ, proposals.end()}})
      std::stable_sort(begin, end,
                       [](const Proposal& a, const Proposal& b) { return a.estimate_s < b.estimate_s; });
    const double most_s = std::min(space_.cutoff_s, space_.near * best_s(proposals, &Proposal::estimate_s));
    std::vector<std::vector<StageRequest>> known;  // solved to the end, they come out the same
    std::erase_if(proposals, [&](const Proposal& each) {
      const bool is_known = std::ranges::find(known, each.requests) != known.end();
      known.push_back(each.requests);
      return is_known || each.estimate_s >= most_s;
    });
  }

  template <class Pipeline>
  std::vector<PlacedSpan> stages_of(const Pipeline& pipeline) const {
    return placed_spans(pipeline, form(), likely_places_);
  }

  /// Those of pipelines below the cutoff; all but the slowest need be no faster than that. False where all
  /// were solved before, or no more may be.
  bool solve_stages_of(std::vector<PlacedSpan> stages, double cutoff_s, std::size_t most = SIZE_MAX) {
    std::vector<PlacedSpan> open;
    std::ranges::stable_sort(stages, std::ranges::greater(), &PlacedSpan::step_s);
    const double slowest_s = stages.front().step_s;
    const auto add = [&](const PlacedSpan& stage) {
      const SolvedStage* known = solved_.find(stage);
      const bool is_done = known && !(known->is_rough && stage.step_s == slowest_s);
      if (is_done || is_among(open, stage) || open.size() == most || solved_cells_ > space_.solved_cells)
        return;
      solved_cells_ += modes_.cells(stage.span.devices);
      open.push_back(stage);
    };
    for (const PlacedSpan& stage : stages) add(stage);
    for (PlacedSpan stage : stages)
      if (has_others_update(stage)) {
        stage.update_weight = kUpdateCountsLittle;
        add(stage);
      }
    if (open.empty() || clock_.is_over()) {
      outcome_.out_of_time |= !open.empty();
      return false;
    }
    clock_.begin(space_.name + ": stages solved", static_cast<int>(open.size()));
    std::vector<SolvedStage> results(open.size());
    run_tasks(static_cast<int>(open.size()), space_.threads, [&](int i) {
      const bool at_its_best = open[i].step_s == slowest_s || open[i].update_weight < 1;
      const double enough = at_its_best ? -infinity : slowest_s;
      results[i] = solver_.solve(open[i], {static_cast<int>(stages.size()), enough, cutoff_s});
      clock_.one_done();
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      outcome_.out_of_time |= results[i].best.hit_time_limit;
      if (!results[i].best.feasible && results[i].least_memory > 0)
        note_shortfall(open[i].span, results[i].least_memory);
      solved_.note(open[i], std::move(results[i]));
    }
    return true;
  }

  enum class Work { done, found_better, none };

  /// Raises the bounds on those stages of a pipeline by which its own may rise the most, and may find better
  /// ways to run them. None: there are no such stages, or no more may be done.
  Work work_on_bounds(const LeastPipeline& pipeline, const PipelineForm& form, double cutoff_s) {
    std::vector<PlacedSpan> open;
    for (const PlacedSpan& stage : bounds_->worth_work(pipeline, form)) {
      if (open.size() == kSolvedAtOnce || bounded_cells_ > space_.bounded_cells) break;
      if (is_among(open, stage)) continue;
      bounded_cells_ += modes_.cells(stage.span.devices);
      open.push_back(stage);
    }
    if (open.empty() || clock_.is_over()) {
      outcome_.out_of_time |= !open.empty();
      return Work::none;
    }
    const StageSolver::Limits limits{.stages = static_cast<int>(pipeline.stages.size()), .cutoff = cutoff_s};
    std::vector<SolvedStage> results(open.size());
    run_tasks(static_cast<int>(open.size()), space_.threads, [&](int i) {
      const SolvedStage* known = solved_.find(open[i]);
      results[i] =
          known ? solver_.with_higher_bound(open[i], limits, *known) : solver_.solve(open[i], limits);
    });
    bool found_better = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      outcome_.out_of_time |= results[i].best.hit_time_limit;
      const SolvedStage* known = solved_.find(open[i]);
      found_better |= results[i].best.feasible &&
                      (!known || seconds_of(results[i].best, 2) != seconds_of(known->best, 2));
      if (known)
        solved_.replace(open[i], std::move(results[i]));
      else
        solved_.note(open[i], std::move(results[i]));
    }
    return found_better ? Work::found_better : Work::done;
  }

  /// It, or one that its solution serves.
  bool is_among(const std::vector<PlacedSpan>& stages, const PlacedSpan& stage) const {
    return std::ranges::any_of(stages,
                               [&](const PlacedSpan& other) { return solved_.are_equal(other, stage); });
  }

  /// Once a stage is solved: of pipelines in which another one's update is the slowest, its own should not be
  /// paid for. Where updates are short that makes no difference.
  bool has_others_update(const PlacedSpan& stage) const {
    const SolvedStage* known = solved_.find(stage);
    return stage.span.devices < space_.devices && known && known->best.feasible &&
           known->best.update_s > kShortUpdate * known->best.step_s;
  }

  void note_shortfall(const StageSpan& span, std::int64_t least_memory) {
    if (outcome_.shortfall.bytes > 0 && least_memory >= outcome_.shortfall.bytes) return;
    outcome_.shortfall = {first_layer(span), end_layer(span), span.devices, least_memory};
  }

  /// Solves what a better partition would have to be made of, until solutions show that there is none.
  void solve_better() {
    clock_.begin(space_.name + ": better stages solved", 0);
    for (;;) {
      const LeastPipeline unsolved = bounds_->least_unsolved(best_s_);
      if (unsolved.stages.empty() || unsolved.seconds >= best_s_ * (1 - space_.gap)) return;
      if (bounds_->raise(unsolved, form(), best_s_)) continue;
      if (!solve_stages_of(stages_of(unsolved), best_s_, kSolvedAtOnce)) return;
      take_better();
    }
  }

  void take_better() {
    for (Partition& partition : partitions_of(corrected())) {
      if (partition.seconds >= best_s_ || !all_solved(partition)) continue;
      best_s_ = partition.seconds;
      partitions_.push_back(std::move(partition));
    }
  }

  /// Until they show that no step is much below the best, or that all take `wanted_s`, or the work is used
  /// up.
  void raise_bounds(double best_step_s, double wanted_s) {
    wanted_s = std::min(wanted_s, best_step_s * (1 - space_.gap));
    double raised_s = 0;
    int in_vain = 0;
    clock_.begin(space_.name + ": bounded", 0);
    for (;;) {
      const auto [unproved, form] = bounds_->least(best_step_s);
      if (unproved.stages.empty() || unproved.seconds >= wanted_s) return;
      if (bounds_->raise(unproved, *form, best_step_s)) continue;
      if (unproved.seconds > (1 + kRaised) * raised_s)
        raised_s = unproved.seconds, in_vain = 0;
      else if (++in_vain > space_.most_in_vain)
        return;
      const Work work = work_on_bounds(unproved, *form, best_step_s);
      if (work == Work::none) return;
      if (work == Work::done) continue;
      take_better();
      solve_better();
      clock_.begin(space_.name + ": bounded", 0);
    }
  }

  static bool all_solved(const Partition& partition) {
    return std::ranges::all_of(partition.stages, [](const Partition::Stage& stage) { return stage.way < 0; });
  }

  const SearchSpace space_;
  PlanningClock& clock_;
  const Cluster& cluster_;
  const std::vector<int> sizes_;
  const StagePlaces places_, likely_places_ = places_.likely();
  const StageSpans spans_;
  const std::vector<PipelineForm> forms_;  ///< of all schedules
  const double most_estimate_s_;           ///< what takes more may not come below the cutoff
  const double alike_;
  const WorkLowerBound work_;
  StageModes modes_;
  const StageSolver solver_;
  const FillOptions filling_{space_.threads, [this] { return clock_.is_long_over(); }};
  StageChoices estimated_ = no_choices();
  SolvedStages solved_;
  std::int64_t solved_cells_ = 0, bounded_cells_ = 0;
  const Proposals proposals_{likely_places_, form(), modes_, solver_, solved_, cluster_};
  std::unique_ptr<PipelineBounds> bounds_;  ///< once there are templates
  double best_s_ = infinity;                ///< the least estimate of a plan that is known
  std::vector<Partition> partitions_;       ///< that are worth proposing
  SearchOutcome outcome_;
};

StageSearch::StageSearch(const PlanningGraph& planning, const SearchSpace& space, CostTable& book,
                         PlanningClock& clock) {
  const std::vector<MeshShape> meshes = stage_meshes(space, book.costs().cluster());
  clock.begin(space.name + ": meshes priced", static_cast<int>(meshes.size()));
  const auto one_done = [&] { clock.one_done(); };
  if (book.price(
          meshes, space.threads, [&] { return clock.is_over(); }, one_done))
    state_ = std::make_unique<State>(planning, space, book, clock);
}
StageSearch::~StageSearch() = default;

SearchOutcome StageSearch::search() { return state_ ? state_->search() : SearchOutcome{.out_of_time = true}; }

SearchOutcome StageSearch::prove(double best_estimate_s, double best_step_s, double enough_s) {
  return state_ ? state_->prove(best_estimate_s, best_step_s, enough_s) : SearchOutcome{.out_of_time = true};
}

}  // namespace alpa
