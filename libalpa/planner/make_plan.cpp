#include "libalpa/planner/make_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/baselines.h"
#include "libalpa/planner/contest.h"
#include "libalpa/planner/layer_clustering.h"
#include "libalpa/planner/parallel_tasks.h"
#include "libalpa/planner/pin.h"
#include "libalpa/planner/stage_search.h"
#include "libalpa/planner/what_would_fit.h"
#include "libalpa/program/lower.h"
#include "libalpa/program/simulate.h"
#include "libalpa/program/verify.h"

namespace alpa {
namespace {

/// The dynamic program looks at the square of their number, on every number of devices.
constexpr int kMostClusters = 48;

/// Throws Error(usage) for a word that is none of these.
void check_word(const char* setting, const std::string& given, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), given) != words.end()) return;
  const std::string near = nearest_name(given, words);
  throw Error(ErrorKind::usage,
              fmt::format("unknown {} '{}'{}", setting, given,
                          near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)),
              fmt::format("one of {}", fmt::join(words, ", ")));
}

constexpr double kWorthSimulating =
    1.03;  ///< the simulator sees overlap and order, which the search's estimate does not

class Planner {
 public:
  Planner(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options, Log& log)
      : model_(model),
        costs_(costs),
        options_(options),
        log_(log),
        end_s_(now_s() + options.time_limit_s),
        devices_(options.devices > 0 ? options.devices : costs.cluster().devices()),
        schedule_(schedule_from_name(options.schedule)),
        contest_(model, costs, options, devices_, end_s_) {}

  Plan run() {
    if (options_.pin)
      enter_pin();
    else
      enter_methods();
    if (options_.searches_beside && (options_.pin || !wants("search"))) search_beside();
    Plan plan = contest_.result();
    plan.prediction.hit_time_limit = contest_.out_of_time() || out_of_time_;
    if (plan.prediction.hit_time_limit)
      log_.warning(fmt::format(
          "the time limit of {} was reached: parts of the search were left out, and another run may "
          "find what this one did not; --time-limit",
          seconds_text(options_.time_limit_s)));
    if (!options_.pin && wants("search") && bound_s_ < std::numeric_limits<double>::infinity()) {
      plan.prediction.lower_bound_s = bound_s_;
      plan.prediction.bound_covers = bound_text(micro_batch_counts());
    }
    return plan;
  }

 private:
  bool wants(const std::string& method) const {
    return options_.method == "auto" || options_.method == method;
  }
  void enter_pin() {
    check_batch(options_.pin->micro_batches);
    check_pin(*options_.pin, priced(options_.pin->micro_batches).graph, costs_.cluster().devices());
    enter_pinned(*options_.pin);
  }

  void enter_methods() {
    const std::vector<int> counts = micro_batch_counts();
    cluster_layers(priced(counts.front()).graph);
    for (const int count : counts) baselines(count);
    if (wants("intra-only") || wants("search"))
      for (const int count : counts) search(count, both_names(), one_stage());
    if (wants("inter-only"))
      for (const int count : counts) search(count, "inter-only", one_device_each());
    if (wants("search"))
      for (const int count : counts) search(count, "search", several_stages());
  }

  /// On as many devices as the winner takes, which is where the search begins and whom it has to beat.
  void search_beside() {
    devices_ = contest_.settle().devices();
    const std::vector<int> counts = micro_batch_counts();
    cluster_layers(priced(counts.front()).graph);
    for (const int count : counts) search(count, "search", one_stage());
    for (const int count : counts) search(count, "search", several_stages());
  }

  std::string both_names() const {
    return options_.method == "auto" ? "search = intra-only" : options_.method;
  }

  void check_batch(int micro_batches) const {
    if (model_.batch % micro_batches != 0)
      throw Error(
          ErrorKind::usage,
          fmt::format("a batch of {} does not divide into {} micro-batches", model_.batch, micro_batches),
          "a divisor of the batch");
  }

  std::vector<int> micro_batch_counts() const {
    if (options_.micro_batches > 0) {
      check_batch(options_.micro_batches);
      return {options_.micro_batches};
    }
    return alpa::micro_batch_counts(model_.batch, devices_);
  }

  void cluster_layers(const Graph& graph) {
    const int layers = static_cast<int>(graph.layers.size());
    if (options_.layers > layers)
      throw Error(ErrorKind::usage, fmt::format("{} clusters of layers asked for, the model has {} layers",
                                                options_.layers, layers));
    const int clusters =
        options_.layers > 0 ? options_.layers : std::min(layers, std::max(kMostClusters, devices_));
    cuts_ = cluster_chain(layer_chain(graph), clusters);
  }

  PricedGraph& priced(int micro_batches) {
    auto& known = graphs_[micro_batches];
    if (!known) known = std::make_unique<PricedGraph>(model_.graph(model_.batch / micro_batches), costs_);
    return *known;
  }

  void baselines(int micro_batches) {
    for (const std::string& method : method_names()) {
      if (!wants(method)) continue;
      for (PinnedPlan& pinned : baseline_plans(method, priced(micro_batches).graph, devices_,
                                               costs_.cluster().devices_per_node, micro_batches, schedule_))
        enter_pinned(std::move(pinned));
    }
  }

  void enter_pinned(PinnedPlan pinned) {
    for (StageRequest& request : pinned.stages) request.micro_batches = pinned.micro_batches;
    Proposal entered =
        contest_.enter(priced(pinned.micro_batches), {pinned.stages, {}, 0}, pinned.method, pinned.schedule);
    if (!entered.requests.empty()) known_[pinned.micro_batches].push_back(std::move(entered));
  }

  SearchSpace space() const {
    SearchSpace space;
    space.devices = devices_;
    space.schedule = schedule_;
    if (options_.rematerialize != "auto") space.rematerialize = {options_.rematerialize == "always"};
    space.threads = thread_count(options_.threads);
    space.end_s = end_s_;
    space.cuts = cuts_;
    return space;
  }
  SearchSpace one_stage() const {
    SearchSpace one = space();
    one.most_stages = 1;
    return one;
  }
  SearchSpace one_device_each() const {
    SearchSpace each = space();
    each.single_devices = true;
    each.least_stages = devices_;
    return each;
  }
  SearchSpace several_stages() const {
    SearchSpace several = space();
    several.least_stages = 2;
    several.cutoff_s = kWorthSimulating * contest_.best_estimate_s();
    return several;
  }

  void search(int micro_batches, const std::string& method, SearchSpace space) {
    const double begin = now_s();
    PricedGraph& graph = priced(micro_batches);
    space.micro_batches = micro_batches;
    space.known = known_[micro_batches];
    SearchOutcome found = search_stages(graph.planning, space, graph.book);
    out_of_time_ |= found.out_of_time;
    if (method != "inter-only") bound_s_ = std::min(bound_s_, found.lower_bound_s);
    log_.debug(fmt::format("{}, {} micro-batches: {} proposals in {}", method, micro_batches,
                           found.proposals.size(), seconds_text(now_s() - begin)));
    if (found.proposals.empty() && found.shortfall_bytes > 0)
      contest_.note_shortfall(fmt::format("{}, {} micro-batches", method, micro_batches),
                              found.shortfall_first_layer, found.shortfall_end_layer, found.shortfall_bytes);
    for (Proposal& proposal : found.proposals) {
      const double estimate = proposal.estimate_s;
      Proposal entered = contest_.enter(graph, std::move(proposal), method, schedule_);
      log_.debug(fmt::format("  {} stages: estimated {}, then {}", entered.requests.size(),
                             seconds_text(estimate), seconds_text(entered.estimate_s)));
    }
  }

  std::string bound_text(const std::vector<int>& counts) const {
    return fmt::format(
        "every plan of {} to {} micro-batches, cut into stages between {} clusters of layers, on submeshes "
        "of one or two axes",
        counts.front(), counts.back(), cuts_.size() - 1);
  }

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  Log& log_;
  double end_s_;
  int devices_;
  ScheduleKind schedule_;
  Contest contest_;
  std::map<int, std::unique_ptr<PricedGraph>> graphs_;  ///< by micro-batches
  std::map<int, std::vector<Proposal>> known_;          ///< baselines that fit, by micro-batches
  std::vector<int> cuts_;
  double bound_s_ = std::numeric_limits<double>::infinity();
  bool out_of_time_ = false;
};

bool has_plan(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options) {
  Log quiet("alpa-plan", LogLevel::off);
  PlannerOptions alone = options;
  alone.searches_beside = false;
  try {
    Planner(model, costs, alone, quiet).run();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible) throw;
    return false;
  }
}

}  // namespace

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  verify(program, graph);
  const Timeline timeline = simulate(program, costs);
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.stages.clear();
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    plan.prediction.stages.push_back({timeline.stages[s], stage.memory, stage.slots});
  }
  plan.prediction.estimated_operators = static_cast<int>(costs.missing().size());
}

Plan make_plan(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options, Log& log) {
  std::vector<std::string> methods{"auto", "search"};
  for (const std::string& name : method_names()) methods.push_back(name);
  check_word("method", options.method, methods);
  check_word("schedule", options.schedule, {"1f1b", "gpipe"});
  check_word("rematerialization", options.rematerialize, {"auto", "never", "always"});
  if (options.devices > costs.cluster().devices())
    throw Error(ErrorKind::usage, fmt::format("{} devices asked for, the cluster has {}", options.devices,
                                              costs.cluster().devices()));
  try {
    return Planner(model, costs, options, log).run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible || options.pin) throw;
    const std::string hint =
        what_would_fit(model.batch, costs.cluster().devices(), options,
                       [&](const PlannerOptions& o) { return has_plan(model, costs, o); });
    throw Error(ErrorKind::infeasible, error.happened(), hint.empty() ? error.hint() : hint);
  }
}

}  // namespace alpa
