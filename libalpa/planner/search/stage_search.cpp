#include "libalpa/planner/search/stage_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

constexpr double kAlike = 1e-4;  ///< slowest stages that the partition takes for equal
/// The best way to run a range of layers on so many devices with so many micro-batches in flight.
struct RangePlan {
  MeshShape mesh;
  bool rematerialize = false;
  StageSolution solution;    ///< the best; not feasible: there is none, or none below the cutoff
  double lower_bound_s = 0;  ///< on step_s of every way
  std::int64_t least_memory = 0;
};

StageSeconds seconds_of(const StageSolution& solution, int micro_batches) {
  return {solution.micro_batch_s, (micro_batches - 1) * solution.micro_batch_s + solution.update_s};
}

std::vector<int> every_layer(int layers) {
  std::vector<int> cuts(static_cast<std::size_t>(layers) + 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  return cuts;
}

/// The numbers of devices that a stage may have.
std::vector<int> stage_sizes(const SearchSpace& space, const Cluster& cluster) {
  if (space.single_devices) return {1};
  std::vector<int> sizes = submesh_sizes(space.devices, cluster.devices_per_node);
  if (space.most_stages == 1) std::erase_if(sizes, [&](int size) { return size != space.devices; });
  return sizes;
}

std::vector<MeshShape> stage_meshes(const SearchSpace& space, const Cluster& cluster) {
  std::vector<MeshShape> meshes;
  for (const int size : stage_sizes(space, cluster))
    for (MeshShape& mesh : mesh_shapes(size, cluster.devices_per_node)) meshes.push_back(std::move(mesh));
  return meshes;
}

class StageSearch {
 public:
  StageSearch(const PlanningGraph& planning, const SearchSpace& space, const CostTable& book,
              PlanningClock& clock)
      : planning_(planning),
        space_(space),
        book_(book),
        clock_(clock),
        cluster_(book.costs().cluster()),
        layers_(static_cast<int>(planning.graph().layers.size())),
        cuts_(space.cuts.empty() ? every_layer(layers_) : space.cuts),
        units_(static_cast<int>(cuts_.size()) - 1),
        most_(std::min({space.most_stages, units_, space.devices})),
        sizes_(stage_sizes(space, cluster_)),
        floor_(planning, book, sizes_, cluster_.devices_per_node, space.micro_batches) {}

  SearchOutcome run() {
    const PipelineSchedule& schedule = find_schedule(space_.schedule);
    in_flight_.assign(static_cast<std::size_t>(most_) + 1, 0);
    for (int stages = 1; stages <= most_; ++stages)
      for (const StageIndex stage : indices_to<StageIndex>(static_cast<std::size_t>(stages))) {
        int& most = in_flight_[stages - stage];
        most = std::max(most, most_in_flight(schedule.order(stage, stages, space_.micro_batches)));
      }
    StageChoices found(units_, space_.devices, sizes_, most_);
    for (int left = 1; left <= most_; ++left) {
      solve_all(ranges(left), left);
      for (const Range& range : ranges(left))
        if (const RangePlan& plan = plan_of(range, left); plan.solution.feasible)
          found.offer(left, range.first_unit, range.end_unit, range.size,
                      seconds_of(plan.solution, space_.micro_batches));
    }
    double best = space_.cutoff_s;  // what was left out takes that at least
    clock_.begin(space_.name + ": stages put together", 0);
    outcome_.out_of_time |= clock_.is_over();
    for (const Partition& partition : best_partitions(found, space_.least_stages, kAlike, stops_)) {
      if (partition.seconds >= space_.cutoff_s) continue;
      best = std::min(best, partition.seconds);
      outcome_.proposals.push_back(proposal(partition));
    }
    outcome_.lower_bound_s = lower_bound(best);
    outcome_.out_of_time |= clock_.is_long_over();
    return std::move(outcome_);
  }

 private:
  struct Range {
    int first, end;            ///< layers
    int size;                  ///< devices
    int first_unit, end_unit;  ///< units are what lies between two cuts
  };
  Range range_of(int first_unit, int end_unit, int size) const {
    return {cuts_[first_unit], cuts_[end_unit], size, first_unit, end_unit};
  }

  /// Equal layers make equal ranges, but for whether they are the ends of the model.
  using Key = std::tuple<std::vector<int>, bool, bool, int, int>;

  /// Of a stage with so many left, itself included, in the pipeline where that is most.
  int in_flight(int stages_left) const { return in_flight_[stages_left]; }

  Key key_of(const Range& range, int flying) const {
    const auto classes = planning_.classes.of_layer.begin();
    return {{classes + range.first, classes + range.end},
            range.first == 0,
            range.end == layers_,
            range.size,
            flying};
  }

  const RangePlan& plan_of(const Range& range, int left) const {
    return *plans_.at(key_of(range, in_flight(left)));
  }

  /// The most that a stage's step may take in a pipeline of less than `pipeline_s`.
  double most_s(const Range& range, double pipeline_s) const {
    return pipeline_s - floor_.rest_s(range.first, range.end, space_.devices - range.size);
  }
  double floor_s(const Range& range) const {
    return space_.micro_batches * floor_.micro_batch_s(range.first, range.end, range.size) +
           floor_.update_s(range.first, range.end, range.size);
  }

  /// On the pipelines that take less than `pipeline_s`, and with that on all. Of a stage in one of those, the
  /// solver bounds the whole step, and what the step leaves to the update is bounded by what the pipeline
  /// leaves to the step.
  double lower_bound(double pipeline_s) const {
    StageChoices bounds(units_, space_.devices, sizes_, most_);
    for (int left = 1; left <= most_; ++left)
      for (const Range& range : ranges(left)) {
        const double step = plan_of(range, left).lower_bound_s;
        const double least = floor_.micro_batch_s(range.first, range.end, range.size);
        const double update = std::max(0.0, most_s(range, pipeline_s) - space_.micro_batches * least);
        const double first = std::max(least, (step - update) / space_.micro_batches);
        if (step < infinity)
          bounds.offer(left, range.first_unit, range.end_unit, range.size, {first, step - first});
      }
    double bound = pipeline_s;
    for (const Partition& partition : best_partitions(bounds, space_.least_stages, kAlike, stops_))
      bound = std::min(bound, partition.seconds / (1 + kAlike));
    return clock_.is_long_over() ? 0 : bound;
  }

  /// What may be a stage with `left` stages left, itself among them.
  std::vector<Range> ranges(int left) const {
    std::vector<Range> ranges;
    for (int first = 0; first < units_ && !clock_.is_long_over(); ++first)
      for (int end = first + 1; end <= units_; ++end)
        for (const int size : sizes_) {
          const int after = units_ - end, rest = space_.devices - size;
          if ((left == 1) != (after == 0) || after < left - 1 || rest < left - 1) continue;
          if ((first == 0 && left == 1) != (rest == 0)) continue;
          const int stages = left + (first > 0 ? 1 : 0);
          if (stages > most_ || (first == 0 && left < space_.least_stages)) continue;
          const Range range = range_of(first, end, size);
          if (floor_.pipeline_s(range.first, range.end, size, rest) < space_.cutoff_s)
            ranges.push_back(range);
        }
    return ranges;
  }

  void solve_all(const std::vector<Range>& ranges, int left) {
    const int flying = in_flight(left);
    std::map<Key, std::pair<Range, const RangePlan*>> open;  // with what is known of fewer in flight
    for (const Range& range : ranges) {
      const Key key = key_of(range, flying);
      if (plans_.contains(key)) continue;
      const RangePlan* fewer = nullptr;
      for (int f = flying - 1; f > 0 && !fewer; --f)
        if (const auto at = plans_.find(key_of(range, f)); at != plans_.end()) fewer = at->second.get();
      open.emplace(key, std::pair(range, fewer));
    }
    std::vector<std::pair<Range, const RangePlan*>> tasks;
    std::vector<std::shared_ptr<RangePlan>*> results;
    for (const auto& [key, task] : open) {
      tasks.push_back(task);
      results.push_back(&plans_[key]);
    }
    clock_.begin(fmt::format("{}: stages with {} after them solved", space_.name, left - 1),
                 static_cast<int>(tasks.size()));
    run_tasks(static_cast<int>(tasks.size()), space_.threads, [&](int i) {
      const auto& [range, fewer] = tasks[i];
      *results[i] = std::make_shared<RangePlan>(solve(range, flying, fewer));
      clock_.one_done();
    });
    for (std::size_t i = 0; i < tasks.size(); ++i) note(tasks[i].first, **results[i]);
  }

  /// More in flight never takes less time or memory.
  RangePlan solve(const Range& range, int flying, const RangePlan* fewer) const {
    if (fewer) {
      const StageSolution& s = fewer->solution;
      if (!s.feasible || s.resident_bytes + flying * s.micro_batch_bytes <= cluster_.memory_bytes)
        return *fewer;
    }
    RangePlan best;
    best.lower_bound_s = infinity;
    double cutoff = most_s(range, space_.cutoff_s);
    for (const bool rematerialize : space_.rematerialize)
      for (const MeshShape& mesh : mesh_shapes(range.size, cluster_.devices_per_node)) {
        const StageRequest request = request_of(range, mesh, flying, rematerialize);
        const double left_s = clock_.left_s();
        if (left_s <= 0) {
          best.solution.hit_time_limit = true;
          best.lower_bound_s = std::min(best.lower_bound_s, floor_s(range));
          continue;
        }
        SelectionOptions options;
        options.gap = space_.gap;
        options.effort = 100'000;
        options.time_limit_s = left_s;
        options.stop = clock_.stop();
        options.cutoff = cutoff;
        StageSolution solution =
            solve_stage(planning_, request, book_.known(mesh), options, start_of(request));
        best.lower_bound_s = std::min(best.lower_bound_s, solution.lower_bound_s);
        best.solution.hit_time_limit |= solution.hit_time_limit;
        if (!solution.feasible) {
          if (solution.least_memory > 0 &&
              (best.least_memory == 0 || solution.least_memory < best.least_memory))
            best.least_memory = solution.least_memory;
          continue;
        }
        if (best.solution.feasible && solution.step_s >= best.solution.step_s) continue;
        const bool hit = best.solution.hit_time_limit;
        best.mesh = mesh;
        best.rematerialize = rematerialize;
        best.solution = std::move(solution);
        best.solution.hit_time_limit = hit;
        cutoff = std::min(cutoff, best.solution.step_s);
      }
    return best;
  }

  StageRequest request_of(const Range& range, const MeshShape& mesh, int flying, bool rematerialize) const {
    StageRequest request;
    request.first_layer = range.first;
    request.end_layer = range.end;
    request.mesh = mesh;
    request.micro_batches = space_.micro_batches;
    request.in_flight = flying;
    request.rematerialize = rematerialize;
    request.pipeline_in_flight = std::ranges::max(in_flight_);
    return request;
  }

  /// A known plan's solution for the same stage.
  const StageSolution* start_of(const StageRequest& wanted) const {
    const StageSolution* best = nullptr;
    for (const Proposal& proposal : space_.known)
      for (std::size_t s = 0; s < proposal.requests.size(); ++s) {
        const StageRequest& r = proposal.requests[s];
        if (r.first_layer != wanted.first_layer || r.end_layer != wanted.end_layer || r.mesh != wanted.mesh ||
            r.rematerialize != wanted.rematerialize)
          continue;
        if (!best || proposal.solutions[s].step_s < best->step_s) best = &proposal.solutions[s];
      }
    return best;
  }

  void note(const Range& range, const RangePlan& plan) {
    outcome_.out_of_time |= plan.solution.hit_time_limit;
    if (plan.solution.feasible || plan.least_memory == 0) return;
    if (outcome_.shortfall_bytes > 0 && plan.least_memory >= outcome_.shortfall_bytes) return;
    outcome_.shortfall_bytes = plan.least_memory;
    outcome_.shortfall_first_layer = range.first;
    outcome_.shortfall_end_layer = range.end;
  }

  Proposal proposal(const Partition& partition) const {
    Proposal proposal;
    int left = static_cast<int>(partition.stages.size()), first = 0;
    for (const auto& [end, size] : partition.stages) {
      const int flying = in_flight(left);
      const Range range = range_of(first, end, size);
      const RangePlan& plan = plan_of(range, left--);
      proposal.requests.push_back(request_of(range, plan.mesh, flying, plan.rematerialize));
      proposal.solutions.push_back(plan.solution);
      first = end;
    }
    proposal.estimate_s = partition.seconds;
    return proposal;
  }

  const PlanningGraph& planning_;
  const SearchSpace& space_;
  const CostTable& book_;
  PlanningClock& clock_;
  const Cluster& cluster_;
  int layers_;
  std::vector<int> cuts_;
  int units_, most_;
  std::vector<int> in_flight_;  ///< [stages left]
  std::vector<int> sizes_;
  WorkLowerBound floor_;
  const std::function<bool()> stops_ = [this] { return clock_.is_long_over(); };
  SearchOutcome outcome_;
  std::map<Key, std::shared_ptr<RangePlan>> plans_;
};

}  // namespace

double pipeline_seconds(const std::vector<StageSolution>& solutions, int micro_batches) {
  std::vector<StageSeconds> seconds;
  for (const StageSolution& solution : solutions) seconds.push_back(seconds_of(solution, micro_batches));
  return pipeline_seconds(seconds);
}

SearchOutcome search_stages(const PlanningGraph& planning, const SearchSpace& space, CostTable& book,
                            PlanningClock& clock) {
  if (book.price(stage_meshes(space, book.costs().cluster()), space.name, clock))
    return StageSearch(planning, space, book, clock).run();
  SearchOutcome nothing;
  nothing.out_of_time = true;
  return nothing;
}

}  // namespace alpa
