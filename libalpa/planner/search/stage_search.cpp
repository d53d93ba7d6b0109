#include "libalpa/planner/search/stage_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/search/stage_estimates.h"
#include "libalpa/planner/search/work_lower_bound.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

/// Slowest stages that the partition takes for equal, and where there are many layers.
constexpr double kAlike = 1e-4, kAlikeOfMany = 5e-3;
constexpr int kManyUnits = 16;

/// Ways to run a stage that are estimated to take that many times the best are not solved for it.
constexpr double kWorthSolving = 1.02;

StageSeconds seconds_of(const StageSolution& solution, int micro_batches) {
  return {solution.micro_batch_s, (micro_batches - 1) * solution.micro_batch_s + solution.update_s};
}

double step_s(const StageSeconds& seconds) { return seconds.first + seconds.others; }

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
  const auto is_doubled = [&](int size) {
    const int nodes = size / cluster.devices_per_node;
    return size == space.devices || nodes <= 1 || std::has_single_bit(static_cast<unsigned>(nodes));
  };
  if (space.doubling_sizes) std::erase_if(sizes, [&](int size) { return !is_doubled(size); });
  return sizes;
}

std::vector<MeshShape> stage_meshes(const SearchSpace& space, const Cluster& cluster) {
  std::vector<MeshShape> meshes;
  for (const int size : stage_sizes(space, cluster))
    for (MeshShape& mesh : mesh_shapes(size, cluster.devices_per_node)) meshes.push_back(std::move(mesh));
  return meshes;
}

/// How a stage may be run, beside how its operators are split.
struct Mode {
  MeshShape mesh;
  bool rematerialize = false;
  auto operator<=>(const Mode&) const = default;
};

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
        floor_(planning, book, sizes_, cluster_.devices_per_node, space.micro_batches),
        alike_(units_ > kManyUnits ? kAlikeOfMany : kAlike),
        is_apart_(space.devices > cluster_.devices_per_node),
        estimates_(planning, book.costs(), space.micro_batches, is_apart_) {}

  SearchOutcome run() {
    find_in_flight();
    outcome_.lower_bound_s =
        std::min(space_.cutoff_s, space_.micro_batches * floor_.rest_s(0, 0, space_.devices));
    if (!make_fronts()) return std::move(outcome_);
    make_templates();
    improve_estimates();
    prove();
    return std::move(outcome_);
  }

 private:
  struct Range {
    int first_unit, end_unit;  ///< units are what lies between two cuts
    int size;                  ///< devices
    bool operator==(const Range&) const = default;
  };
  int first_layer(const Range& range) const { return cuts_[range.first_unit]; }
  int end_layer(const Range& range) const { return cuts_[range.end_unit]; }

  /// Equal layers make equal stages, but for whether they are the ends of the model.
  using Key = std::tuple<std::vector<int>, bool, bool, int>;
  Key key_of(const Range& range) const {
    const auto classes = planning_.classes.of_layer.begin();
    return {{classes + first_layer(range), classes + end_layer(range)},
            range.first_unit == 0,
            range.end_unit == units_,
            range.size};
  }

  void find_in_flight() {
    const PipelineSchedule& schedule = find_schedule(space_.schedule);
    in_flight_.assign(static_cast<std::size_t>(most_) + 1, 0);
    for (int stages = 1; stages <= most_; ++stages)
      for (const StageIndex stage : indices_to<StageIndex>(static_cast<std::size_t>(stages))) {
        int& most = in_flight_[stages - stage];
        most = std::max(most, most_in_flight(schedule.order(stage, stages, space_.micro_batches)));
      }
  }

  double left_s() const { return std::max(0.0, clock_.left_s()); }

  /// Every mode's first bound; false where they show that no pipeline takes less than the cutoff.
  bool make_fronts() {
    for (const int size : sizes_)
      for (const MeshShape& mesh : mesh_shapes(size, cluster_.devices_per_node))
        for (const bool rematerialize : space_.rematerialize) modes_.push_back({mesh, rematerialize});
    fronts_.resize(modes_.size());
    clock_.begin(space_.name + ": layers bounded on their meshes", static_cast<int>(modes_.size()));
    run_tasks(static_cast<int>(modes_.size()), space_.threads, [&](int i) {
      clock_.one_done();
      if (clock_.is_over()) return;
      TemplateOptions options;
      options.micro_batches = space_.micro_batches;
      options.rematerialize = modes_[i].rematerialize;
      options.most_in_flight = std::ranges::max(in_flight_);
      fronts_[i] = std::make_unique<TemplateFront>(planning_, book_.known(modes_[i].mesh), options);
    });
    for (const auto& front : fronts_) {
      if (!front) outcome_.out_of_time = true;
      if (!front || front->bounds().empty()) continue;
      estimates_.add(front->bounds().front());
    }
    if (outcome_.out_of_time) return false;
    device_s_.assign(static_cast<std::size_t>(units_), infinity);
    for (const Mode& mode : modes_)
      for (int unit = 0; unit < units_; ++unit)
        device_s_[unit] =
            std::min(device_s_[unit], device_count(mode.mesh) * least_step_s(mode, {unit, unit + 1, 0}));
    all_device_s_ = std::accumulate(device_s_.begin(), device_s_.end(), 0.0);
    outcome_.lower_bound_s =
        std::min(space_.cutoff_s, std::max(outcome_.lower_bound_s, all_device_s_ / space_.devices));
    return outcome_.lower_bound_s < space_.cutoff_s;
  }

  double least_step_s(const Mode& mode, const Range& range) const {
    return estimates_.least_step_s(mode.mesh, mode.rematerialize, first_layer(range), end_layer(range));
  }

  /// No pipeline with that stage takes less: others share the rest of the devices, at the most efficient.
  double least_pipeline_s(const Mode& mode, const Range& range) const {
    const double own = least_step_s(mode, range), rest = space_.devices - range.size;
    double others = all_device_s_;
    for (int unit = range.first_unit; unit < range.end_unit; ++unit) others -= device_s_[unit];
    return std::max(own, rest > 0 ? others / rest : 0);
  }

  /// Whether a pipeline below the cutoff may have a stage of that mode.
  bool is_useful(const Mode& mode) const {
    const int size = device_count(mode.mesh);
    for (int first = 0; first < units_; ++first)
      for (int end = first + 1; end <= units_; ++end)
        if (is_range({first, end, size}) && least_pipeline_s(mode, {first, end, size}) < space_.cutoff_s)
          return true;
    return false;
  }

  void make_templates() {
    std::vector<int> useful;
    for (std::size_t i = 0; i < modes_.size(); ++i)
      if (!fronts_[i]->bounds().empty() && is_useful(modes_[i]))
        useful.push_back(static_cast<int>(i));
      else
        fronts_[i].reset();  // their problems take most of the memory of a search
    struct Found {
      std::vector<StageTemplate> templates;
      std::vector<StageBound> bounds;
      std::int64_t cells = 0;
      bool out_of_time = false;
    };
    std::vector<Found> found(useful.size());
    clock_.begin(space_.name + ": layers solved on their meshes", static_cast<int>(useful.size()));
    run_tasks(static_cast<int>(useful.size()), space_.threads, [&](int i) {
      const std::unique_ptr<TemplateFront> front = std::move(fronts_[useful[i]]);
      front->find_templates(Deadline(left_s(), clock_.stop()));
      found[i] = {front->templates(), front->bounds(), front->cells(), front->out_of_time()};
      clock_.one_done();
    });
    for (std::size_t i = 0; i < useful.size(); ++i) {
      outcome_.out_of_time |= found[i].out_of_time;
      cells_[modes_[useful[i]]] = found[i].cells;
      for (const StageTemplate& whole : found[i].templates) estimates_.add(whole);
      for (std::size_t b = 1; b < found[i].bounds.size(); ++b) estimates_.add(found[i].bounds[b]);
    }
  }

  bool is_range(const Range& range) const {
    const bool all = range.first_unit == 0 && range.end_unit == units_;
    return all == (range.size == space_.devices);
  }

  template <class Visit>
  void for_ranges(const Visit& visit) const {
    for (int first = 0; first < units_ && !clock_.is_long_over(); ++first)
      for (int end = first + 1; end <= units_; ++end)
        for (const int size : sizes_) {
          if (const Range range{first, end, size}; is_range(range)) visit(range);
        }
  }

  /// Estimates, corrected by what was solved.
  StageChoices estimated() const {
    StageChoices choices(units_, space_.devices, sizes_, in_flight_);
    std::map<int, std::vector<int>> of_size;
    for (std::size_t t = 0; t < estimates_.templates().size(); ++t)
      of_size[device_count(estimates_.templates()[t].mesh)].push_back(static_cast<int>(t));
    for_ranges([&](const Range& range) {
      const auto known = corrections_.find(key_of(range));
      for (const int t : of_size[range.size]) {
        StageWay way = estimates_.estimate(t, first_layer(range), end_layer(range));
        if (known != corrections_.end()) correct(known->second, way);
        if (way.most_in_flight > 0) choices.offer(range.first_unit, range.end_unit, range.size, way);
      }
    });
    for (const auto& [key, solved] : solved_)
      for (const Range& range : solved.ranges)
        if (solved.best.feasible)
          choices.offer(range.first_unit, range.end_unit, range.size,
                        {solved.in_flight, seconds_of(solved.best, space_.micro_batches), solved.id});
    return choices;
  }

  /// What solving showed of the estimates of a stage: they are that much too low, and memory allows fewer in
  /// flight.
  struct Correction {
    double factor = 1;
    int too_many_in_flight = 1 << 20;
  };
  static void correct(const Correction& known, StageWay& way) {
    way.seconds.first *= known.factor;
    way.seconds.others *= known.factor;
    way.most_in_flight = std::min(way.most_in_flight, known.too_many_in_flight - 1);
  }

  /// A stage with so many micro-batches in flight, solved in the modes that could be its best.
  struct SolvedStage {
    int id = 0;
    int in_flight = 0;
    Range range;                ///< that was solved
    std::vector<Range> ranges;  ///< all that are equal
    Mode mode;
    StageSolution best;
    double lower_bound_s = 0;
    std::int64_t least_memory = 0;
  };
  using SolvedKey = std::pair<Key, int>;

  /// Partitions by estimates, of which the best's stages are solved until it has none that is not.
  void improve_estimates() {
    std::vector<Partition> partitions;
    for (;;) {
      clock_.begin(space_.name + ": stages put together", 0);
      const StageChoices choices = estimated();
      partitions = best_partitions(choices, space_.least_stages, alike_, stops_);
      if (partitions.empty()) break;
      const Partition& best = *std::ranges::min_element(partitions, {}, &Partition::seconds);
      if (best.seconds >= space_.cutoff_s || !solve_stages_of(best)) break;
    }
    if (partitions.empty()) find_shortfall();
    for (const Partition& partition : partitions)
      if (partition.seconds < space_.cutoff_s) outcome_.proposals.push_back(proposal(partition));
  }

  std::vector<std::pair<Range, int>> stages_of(const Partition& partition) const {
    std::vector<std::pair<Range, int>> stages;  // with micro-batches in flight
    int left = static_cast<int>(partition.stages.size()), first = 0;
    for (const Partition::Stage& stage : partition.stages) {
      stages.push_back({{first, stage.end_layer, stage.devices}, in_flight_[left--]});
      first = stage.end_layer;
    }
    return stages;
  }

  /// False where all were solved before, or no more may be.
  bool solve_stages_of(const Partition& partition) {
    std::vector<std::pair<Range, int>> open;
    std::set<SolvedKey> keys;
    for (const auto& [range, flying] : stages_of(partition)) {
      const SolvedKey key{key_of(range), flying};
      if (solved_.contains(key) || !keys.insert(key).second) continue;
      if (solved_cells_ > space_.solved_cells) break;
      solved_cells_ += cells_of(range);
      open.push_back({range, flying});
    }
    if (open.empty() || clock_.is_over()) {
      outcome_.out_of_time |= !open.empty();
      return false;
    }
    clock_.begin(space_.name + ": stages solved", static_cast<int>(open.size()));
    std::vector<SolvedStage> results(open.size());
    run_tasks(static_cast<int>(open.size()), space_.threads, [&](int i) {
      results[i] = solve(open[i].first, open[i].second);
      clock_.one_done();
    });
    for (std::size_t i = 0; i < open.size(); ++i) note(open[i].first, std::move(results[i]));
    return true;
  }

  /// In one of its modes, about.
  std::int64_t cells_of(const Range& range) const {
    std::int64_t most = 0;
    for (const auto& [mode, cells] : cells_)
      if (device_count(mode.mesh) == range.size) most = std::max(most, cells);
    return most;
  }

  struct Estimated {
    Mode mode;
    StageWay way;
  };

  /// The best template of each mode, fastest first.
  std::vector<Estimated> estimated_modes(const Range& range, int flying) const {
    std::map<Mode, StageWay> best;
    for (std::size_t t = 0; t < estimates_.templates().size(); ++t) {
      const StageTemplate& whole = estimates_.templates()[t];
      if (device_count(whole.mesh) != range.size) continue;
      const StageWay way = estimates_.estimate(static_cast<int>(t), first_layer(range), end_layer(range));
      const auto [at, is_new] = best.try_emplace({whole.mesh, whole.rematerialize}, way);
      const bool fits = way.most_in_flight >= flying, known_fits = at->second.most_in_flight >= flying;
      if (!is_new &&
          (fits > known_fits || (fits == known_fits && step_s(way.seconds) < step_s(at->second.seconds))))
        at->second = way;
    }
    std::vector<Estimated> modes;
    for (const auto& [mode, way] : best) modes.push_back({mode, way});
    std::ranges::stable_sort(modes, {}, [&](const Estimated& e) {
      return std::pair(e.way.most_in_flight < flying, step_s(e.way.seconds));
    });
    return modes;
  }

  /// The part of that mode's best template.
  StageSolution start_of(const Range& range, const Mode& mode, int flying) const {
    for (const Estimated& estimated : estimated_modes(range, flying))
      if (estimated.mode == mode)
        return part_of(estimates_.templates()[estimated.way.id], planning_, first_layer(range),
                       end_layer(range));
    return {};
  }

  SolvedStage solve(const Range& range, int flying) const {
    SolvedStage solved;
    solved.in_flight = flying;
    solved.range = range;
    solved.lower_bound_s = infinity;
    double cutoff = infinity;
    const std::vector<Estimated> modes = estimated_modes(range, flying);
    for (const auto& [mode, way] : modes) {
      const double least = least_step_s(mode, range);
      const bool is_near = step_s(way.seconds) <= kWorthSolving * step_s(modes.front().way.seconds);
      if (least >= cutoff || (solved.best.feasible && !is_near) || left_s() <= 0) {
        solved.lower_bound_s = std::min(solved.lower_bound_s, least);
        solved.best.hit_time_limit |= left_s() <= 0;
        continue;
      }
      SelectionOptions options;
      options.gap = space_.gap;
      options.effort = space_.effort;
      options.most_cbc_cells = space_.most_cbc_cells;
      options.time_limit_s = left_s();
      options.stop = clock_.stop();
      options.cutoff = cutoff;
      const StageSolution start =
          part_of(estimates_.templates()[way.id], planning_, first_layer(range), end_layer(range));
      StageSolution solution =
          solve_stage(planning_, request_of(range, mode, flying), book_.known(mode.mesh), options, &start);
      const bool hit = solved.best.hit_time_limit || solution.hit_time_limit;
      solved.lower_bound_s = std::min(solved.lower_bound_s, std::max(least, solution.lower_bound_s));
      if (solution.feasible && (!solved.best.feasible || solution.step_s < solved.best.step_s)) {
        solved.mode = mode;
        solved.best = std::move(solution);
        cutoff = std::min(cutoff, solved.best.step_s);
      } else if (solution.least_memory > 0 &&
                 (solved.least_memory == 0 || solution.least_memory < solved.least_memory)) {
        solved.least_memory = solution.least_memory;
      }
      solved.best.hit_time_limit = hit;
    }
    return solved;
  }

  StageRequest request_of(const Range& range, const Mode& mode, int flying) const {
    StageRequest request;
    request.first_layer = first_layer(range);
    request.end_layer = end_layer(range);
    request.mesh = mode.mesh;
    request.micro_batches = space_.micro_batches;
    request.in_flight = flying;
    request.rematerialize = mode.rematerialize;
    request.is_apart = is_apart_;
    request.pipeline_in_flight = std::ranges::max(in_flight_);
    return request;
  }

  void note(const Range& range, SolvedStage solved) {
    const Key key = key_of(range);
    const int flying = solved.in_flight;
    outcome_.out_of_time |= solved.best.hit_time_limit;
    solved.ranges.clear();
    for_ranges([&](const Range& other) {
      if (key_of(other) == key) solved.ranges.push_back(other);
    });
    solved.id = -1 - static_cast<int>(solved_.size());
    Correction& correction = corrections_[key];
    if (solved.best.feasible) {
      double estimate = infinity;
      for (const Estimated& e : estimated_modes(range, flying))
        if (e.way.most_in_flight >= flying) estimate = std::min(estimate, step_s(e.way.seconds));
      if (estimate < infinity) correction.factor = std::max(correction.factor, solved.best.step_s / estimate);
    } else {
      correction.too_many_in_flight = std::min(correction.too_many_in_flight, flying);
      note_shortfall(range, solved.least_memory);
    }
    const SolvedStage& kept = solved_.emplace(SolvedKey{key, flying}, std::move(solved)).first->second;
    of_id_.push_back(&kept);
  }

  void note_shortfall(const Range& range, std::int64_t least_memory) {
    if (least_memory == 0) return;
    if (outcome_.shortfall_bytes > 0 && least_memory >= outcome_.shortfall_bytes) return;
    outcome_.shortfall_bytes = least_memory;
    outcome_.shortfall_first_layer = first_layer(range);
    outcome_.shortfall_end_layer = end_layer(range);
  }

  /// Every pipeline has a stage with the first layer, which memory allows in none of the ways: the least that
  /// one of them needs, or any other stage where the first layer is not why.
  void find_shortfall() {
    if (outcome_.shortfall_bytes > 0) return;
    for (int unit = 0; unit < units_; ++unit) {
      std::int64_t least = 0;
      Range leanest{0, 0, 0};
      for_ranges([&](const Range& range) {
        if (range.first_unit > unit || range.end_unit <= unit) return;
        for (std::size_t t = 0; t < estimates_.templates().size(); ++t) {
          if (device_count(estimates_.templates()[t].mesh) != range.size) continue;
          const std::int64_t bytes =
              estimates_.least_memory(static_cast<int>(t), first_layer(range), end_layer(range));
          if (least == 0 || bytes < least) least = bytes, leanest = range;
        }
      });
      if (least > cluster_.memory_bytes) return note_shortfall(leanest, least);
    }
  }

  /// Of stages in one of the pipelines below the cutoff, the step is bounded, and what it leaves to the
  /// update by what the pipeline leaves to the step. With `known_solutions`, solved stages are what their
  /// solutions are: no bound any more, but it shows which stages are still to be solved.
  StageChoices bounded(double pipeline_s, bool known_solutions) const {
    StageChoices choices(units_, space_.devices, sizes_, in_flight_);
    const auto offer = [&](const Range& range, double step, int most_in_flight, int id) {
      const double least = floor_.micro_batch_s(first_layer(range), end_layer(range), range.size);
      const double rest = floor_.rest_s(first_layer(range), end_layer(range), space_.devices - range.size);
      const double update = std::max(0.0, pipeline_s - rest - space_.micro_batches * least);
      const double first = std::max(least, (step - update) / space_.micro_batches);
      choices.offer(range.first_unit, range.end_unit, range.size,
                    {most_in_flight, {first, std::max(step, space_.micro_batches * least) - first}, id});
    };
    for_ranges([&](const Range& range) {
      double least = infinity;
      for (const Mode& mode : modes_)
        if (device_count(mode.mesh) == range.size) least = std::min(least, least_step_s(mode, range));
      if (least == infinity) return;
      const Key key = key_of(range);
      // More in flight never takes less.
      double known = least;
      int from = 1, id = 0;
      for (auto at = solved_.lower_bound({key, 0}); at != solved_.end() && at->first.first == key; ++at) {
        if (at->second.in_flight > from) offer(range, known, at->second.in_flight - 1, id);
        from = at->second.in_flight;
        id = at->second.id;
        if (known_solutions && at->second.best.feasible) {
          choices.offer(range.first_unit, range.end_unit, range.size,
                        {from, seconds_of(at->second.best, space_.micro_batches), id});
          known = at->second.best.step_s;
          ++from;
        } else {
          known = std::max(known, at->second.lower_bound_s);
        }
        if (known == infinity) return;
      }
      offer(range, known, 1 << 20, id);
    });
    return choices;
  }

  /// Solves what a better partition would have to be made of, until there is none.
  void prove() {
    double best = space_.cutoff_s;
    for (const Proposal& proposal : outcome_.proposals) best = std::min(best, proposal.estimate_s);
    for (;;) {
      clock_.begin(space_.name + ": bounded", 0);
      const std::vector<Partition> partitions =
          best_partitions(bounded(best, true), space_.least_stages, alike_, stops_);
      const auto least = std::ranges::min_element(partitions, {}, &Partition::seconds);
      if (least == partitions.end() || least->seconds >= best * (1 - space_.gap) || !solve_stages_of(*least))
        break;
      const StageChoices estimates = estimated();
      for (const Partition& partition : best_partitions(estimates, space_.least_stages, alike_, stops_)) {
        if (partition.seconds >= best || !all_solved(partition)) continue;
        best = partition.seconds;
        outcome_.proposals.push_back(proposal(partition));
      }
    }
    double bound = best;
    for (const Partition& partition :
         best_partitions(bounded(best, false), space_.least_stages, alike_, stops_))
      bound = std::min(bound, partition.seconds / (1 + alike_));
    outcome_.lower_bound_s = clock_.is_long_over() ? 0 : bound;
    outcome_.out_of_time |= clock_.is_long_over();
  }

  bool all_solved(const Partition& partition) const {
    return std::ranges::all_of(partition.stages, [](const Partition::Stage& stage) { return stage.way < 0; });
  }

  Proposal proposal(const Partition& partition) const {
    Proposal proposal;
    const std::vector<std::pair<Range, int>> stages = stages_of(partition);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto& [range, flying] = stages[s];
      const int way = partition.stages[s].way;
      if (way < 0) {
        const SolvedStage& solved = *of_id_[-1 - way];
        proposal.requests.push_back(request_of(range, solved.mode, flying));
        // Of an equal stage elsewhere the nodes are others.
        proposal.solutions.push_back(range == solved.range ? solved.best
                                                           : start_of(range, solved.mode, flying));
      } else {
        const StageTemplate& whole = estimates_.templates()[way];
        proposal.requests.push_back(request_of(range, {whole.mesh, whole.rematerialize}, flying));
        proposal.solutions.push_back(part_of(whole, planning_, first_layer(range), end_layer(range)));
      }
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
  double alike_;
  const std::function<bool()> stops_ = [this] { return clock_.is_long_over(); };
  std::vector<Mode> modes_;
  const bool is_apart_;  ///< neighbours of a stage are taken to be on other nodes
  StageEstimates estimates_;
  std::vector<std::unique_ptr<TemplateFront>> fronts_;  ///< [mode]
  std::vector<double>
      device_s_;  ///< [unit] device-seconds of a step where they are fewest, memory left aside
  double all_device_s_ = 0;
  std::map<Mode, std::int64_t> cells_;
  std::int64_t solved_cells_ = 0;
  std::map<Key, Correction> corrections_;
  std::map<SolvedKey, SolvedStage> solved_;
  std::vector<const SolvedStage*> of_id_;  ///< [-1 - id]
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
  if (book.price(stage_meshes(space, book.costs().cluster()), space.name, clock))
    return StageSearch(planning, space, book, clock).run();
  SearchOutcome nothing;
  nothing.out_of_time = true;
  return nothing;
}

}  // namespace alpa
