#include "libalpa/planner/search/stage_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/search/fastest_ways.h"
#include "libalpa/planner/search/pipeline_bounds.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/solved_stages.h"

namespace alpa {
namespace {

/// Slowest stages that the partition takes for equal, and where there are many layers.
constexpr double kAlike = 1e-4, kAlikeOfMany = 5e-3;
constexpr int kManyUnits = 16;

/// Estimates may be that many times what solving finds.
constexpr double kEstimatesAbove = 1.04;

/// Of a pipeline that may be better than the best: its slowest stages show soonest that it is not.
constexpr std::size_t kSolvedAtOnce = 2;

/// Of the work that may be done for bounds: a part that is done however near they are.
constexpr std::int64_t kSoonProved = 8;

/// Of a bound: work that raises it by less was in vain.
constexpr double kRaised = 1e-5;

std::vector<int> every_layer(const Graph& graph) {
  std::vector<int> cuts(graph.layers.size() + 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  return cuts;
}

class StageSearch {
 public:
  StageSearch(const PlanningGraph& planning, const SearchSpace& space, const CostTable& book,
              PlanningClock& clock)
      : space_(space),
        clock_(clock),
        cluster_(book.costs().cluster()),
        sizes_(stage_sizes(space, cluster_)),
        places_(space.devices, cluster_.devices_per_node),
        spans_(planning.classes, space.cuts.empty() ? every_layer(planning.graph()) : space.cuts, sizes_,
               space.devices, space.needed_cuts),
        form_(form_of(first_schedule(space.schedule), space.micro_batches,
                      std::min({space.most_stages, spans_.units(), space.devices}))),
        most_estimate_s_(kEstimatesAbove * space.cutoff_s),
        alike_(spans_.units() > kManyUnits ? kAlikeOfMany : kAlike),
        work_(planning, book, sizes_, cluster_.devices_per_node, space.mesh_axes),
        modes_(planning, book, spans_, stage_meshes(space, cluster_), space.rematerialize,
               {space.micro_batches, std::ranges::max(form_.in_flight), space.cutoff_s, space.threads,
                space.name, space.cache}),
        solver_(planning, space, book, spans_, modes_, clock, std::ranges::max(form_.in_flight)),
        solved_(spans_, modes_, space.micro_batches) {}

  SearchOutcome run() {
    const auto at_least = [&](double seconds) {
      outcome_.lower_bound_s = std::min(space_.cutoff_s, std::max(outcome_.lower_bound_s, seconds));
      outcome_.bound_of_first_s = outcome_.lower_bound_s;
    };
    at_least(space_.micro_batches * work_.rest_s(0, 0, space_.devices));
    outcome_.out_of_time = !modes_.find_bounds(clock_);
    if (!outcome_.out_of_time) at_least(modes_.least_pipeline_s());
    if (outcome_.out_of_time || outcome_.lower_bound_s >= space_.cutoff_s) return std::move(outcome_);
    outcome_.out_of_time = !modes_.find_templates(clock_);
    estimate();
    improve();
    prove();
    propose();
    return std::move(outcome_);
  }

 private:
  int first_layer(const StageSpan& span) const { return spans_.first_layer(span); }
  int end_layer(const StageSpan& span) const { return spans_.end_layer(span); }

  std::vector<PipelineForm> forms_of(const std::vector<std::string>& schedules) const {
    std::vector<PipelineForm> forms;
    for (const std::string& schedule : schedules)
      forms.push_back(form_of(schedule, space_.micro_batches, static_cast<int>(form_.in_flight.size()) - 1));
    return forms;
  }
  StageChoices no_choices() const { return {spans_.units(), places_, sizes_, form_.in_flight}; }
  StageChoices corrected() const { return solved_.choices(estimated_); }
  std::vector<Partition> partitions_of(const StageChoices& choices) const {
    return best_partitions(choices, space_.least_stages, alike_, stops_);
  }

  void estimate() {
    for (const StageSpan& span : spans_.all()) {
      if (clock_.is_long_over()) return;
      FastestWays fastest(form_.in_flight);
      modes_.for_each_way(span, [&](const StageWay& way) { fastest.add(way); });
      for (const StageSides& sides :
           places_.all_sides(span.devices, span.first_unit == 0, span.end_unit == spans_.units()))
        for (StageWay way : fastest.all()) {
          way.seconds = way.seconds + modes_.arrivals(span, sides);
          estimated_.offer(span.first_unit, span.end_unit, span.devices, sides, way);
        }
    }
  }

  /// Partitions by estimates, of which the best's stages are solved until it has none that is not.
  void improve() {
    for (;;) {
      clock_.begin(space_.name + ": stages put together", 0);
      partitions_ = partitions_of(corrected());
      if (partitions_.empty()) return find_shortfall();
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
                                             static_cast<std::size_t>(space_.proposals), stops_))
        if (std::ranges::find(partitions, near) == partitions.end()) partitions.push_back(std::move(near));
    }
    std::vector<Proposal>& proposals = outcome_.proposals;
    for (const Partition& partition : partitions) proposals.push_back(proposal(partition));
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
    return placed_spans(pipeline, form_, places_);
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
  Work work_on_bounds(const PipelineBounds& bounds, const LeastPipeline& pipeline, const PipelineForm& form,
                      double cutoff_s) {
    std::vector<PlacedSpan> open;
    for (const PlacedSpan& stage : bounds.worth_work(pipeline, form)) {
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
    outcome_.shortfall = {first_layer(span), end_layer(span), least_memory};
  }

  /// Every layer is in some stage of a pipeline: the first one that memory allows no stage with, and the
  /// least that one of those needs.
  void find_shortfall() {
    if (outcome_.shortfall.bytes > 0) return;
    const std::vector<StageTemplate>& templates = modes_.estimates().templates();
    for (int unit = 0; unit < spans_.units(); ++unit) {
      std::int64_t least = 0;
      StageSpan leanest;
      for (const StageSpan& span : spans_.all()) {
        if (span.first_unit > unit || span.end_unit <= unit) continue;
        for (std::size_t t = 0; t < templates.size(); ++t) {
          if (device_count(templates[t].mesh) != span.devices) continue;
          const std::int64_t bytes =
              modes_.estimates().least_memory(static_cast<int>(t), first_layer(span), end_layer(span));
          if (least == 0 || bytes < least) least = bytes, leanest = span;
        }
      }
      if (least > cluster_.memory_bytes) return note_shortfall(leanest, least);
    }
  }

  /// Solves what a better partition would have to be made of, until there is none.
  void prove() {
    double best = space_.best_s;
    for (const Partition& partition : partitions_) best = std::min(best, partition.seconds);
    clock_.begin(space_.name + ": bounded", 0);
    PipelineBounds bounds(space_, spans_, modes_, work_, solved_, solver_, {spans_.units(), places_, sizes_},
                          forms_, clock_, stops_);
    const auto is_worth_it = [&](const LeastPipeline& least) {
      return least.seconds < best * (1 - space_.gap);
    };
    double raised_s = 0;
    int in_vain = 0;
    for (;;) {
      // Once solutions show none that is better, bounds may.
      const LeastPipeline unsolved = bounds.least(best, true, form_);
      if (is_worth_it(unsolved) && bounds.raise(unsolved, form_, best)) continue;
      if (!is_worth_it(unsolved) || !solve_stages_of(stages_of(unsolved), best, kSolvedAtOnce)) {
        const auto [unproved, form] = bounds.least(best);
        const bool is_near = unproved.seconds >= best * (1 - space_.proved_gap);
        if (!is_worth_it(unproved) || (is_near && bounded_cells_ > space_.bounded_cells / kSoonProved)) break;
        if (bounds.raise(unproved, *form, best)) continue;
        if (unproved.seconds > (1 + kRaised) * raised_s)
          raised_s = unproved.seconds, in_vain = 0;
        else if (++in_vain > space_.most_in_vain)
          break;
        const Work work = work_on_bounds(bounds, unproved, *form, best);
        if (work == Work::none) break;
        if (work == Work::done) continue;
      }
      for (Partition& partition : partitions_of(corrected())) {
        if (partition.seconds >= best || !all_solved(partition)) continue;
        best = partition.seconds;
        partitions_.push_back(std::move(partition));
      }
    }
    const double of_first_s = bounds.bound_under(form_, best, best),
                 of_all_s = bounds.bound_under_others(best, of_first_s);
    outcome_.lower_bound_s = clock_.is_long_over() ? 0 : of_all_s;
    outcome_.bound_of_first_s = clock_.is_long_over() ? 0 : of_first_s;
    outcome_.out_of_time |= clock_.is_long_over();
  }

  static bool all_solved(const Partition& partition) {
    return std::ranges::all_of(partition.stages, [](const Partition::Stage& stage) { return stage.way < 0; });
  }

  /// Once it is known where each stage lies.
  Proposal proposal(const Partition& partition) const {
    Proposal proposal;
    const std::vector<PlacedSpan> stages = stages_of(partition);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      auto [request, solution] = solution_of(stages[s], partition.stages[s].way);
      proposal.requests.push_back(std::move(request));
      proposal.solutions.push_back(std::move(solution));
    }
    place_stages(proposal.requests, cluster_);
    std::vector<StageSeconds> seconds;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageRequest& request = proposal.requests[s];
      const StageSeconds taken = modes_.arrivals(stages[s].span, stages[s].sides),
                         takes = modes_.arrivals(stages[s].span, request.sides);
      seconds.push_back(partition.stages[s].seconds);
      seconds.back().first += takes.first - taken.first;
      seconds.back().others += takes.others - taken.others;
    }
    proposal.estimate_s = pipeline_seconds(seconds);
    return proposal;
  }

  std::pair<StageRequest, StageSolution> solution_of(PlacedSpan stage, int way) const {
    if (way >= 0) return {solver_.request_of(stage, modes_.mode_of(way)), modes_.part(way, stage.span)};
    const SolvedStage& solved = solved_.of_way(way);
    stage.update_weight = solved.update_weight;
    const StageRequest request = solver_.request_of(stage, solved.mode);
    if (stage.span == solved.span) return {request, solved.best};
    // Of an equal stage elsewhere the nodes are others: it starts from the same template.
    const std::optional<StageWay> start = modes_.way_of(solved.mode, stage.span, stage.in_flight);
    return {request, start ? modes_.part(start->id, stage.span) : StageSolution{}};
  }

  const SearchSpace& space_;
  PlanningClock& clock_;
  const Cluster& cluster_;
  const std::vector<int> sizes_;
  const StagePlaces places_;
  const StageSpans spans_;
  const PipelineForm form_;  ///< under the schedule that stages are searched for under
  const std::vector<PipelineForm> forms_ = forms_of(schedules_of(space_.schedule));
  const double most_estimate_s_;  ///< what takes more may not come below the cutoff
  const double alike_;
  const WorkLowerBound work_;
  StageModes modes_;
  const StageSolver solver_;
  const std::function<bool()> stops_ = [this] { return clock_.is_long_over(); };
  StageChoices estimated_ = no_choices();
  SolvedStages solved_;
  std::int64_t solved_cells_ = 0, bounded_cells_ = 0;
  std::vector<Partition> partitions_;  ///< that are worth proposing
  SearchOutcome outcome_;
};

}  // namespace

double pipeline_seconds(const std::vector<StageSolution>& solutions, int micro_batches) {
  std::vector<StageSeconds> seconds;
  for (const StageSolution& solution : solutions) seconds.push_back(seconds_of(solution, micro_batches));
  return pipeline_seconds(seconds);
}

SearchOutcome search_stages(const PlanningGraph& planning, const SearchSpace& space, CostTable& book,
                            PlanningClock& clock) {
  const std::vector<MeshShape> meshes = stage_meshes(space, book.costs().cluster());
  clock.begin(space.name + ": meshes priced", static_cast<int>(meshes.size()));
  const auto one_done = [&] { clock.one_done(); };
  if (book.price(
          meshes, space.threads, [&] { return clock.is_over(); }, one_done))
    return StageSearch(planning, space, book, clock).run();
  SearchOutcome nothing;
  nothing.out_of_time = true;
  return nothing;
}

}  // namespace alpa
