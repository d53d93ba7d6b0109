#include "libalpa/planner/make_plan.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/baselines.h"
#include "libalpa/planner/pin.h"
#include "libalpa/planner/stage_search.h"
#include "libalpa/program/lower.h"
#include "libalpa/program/schedule.h"
#include "libalpa/program/simulate.h"
#include "libalpa/program/verify.h"

namespace alpa {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Throws Error(usage) for a word that is none of these.
void check_word(const char* setting, const std::string& given, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), given) != words.end()) return;
  const std::string near = nearest_name(given, words);
  throw Error(ErrorKind::usage, fmt::format("unknown {} '{}'{}", setting, given, near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)),
              fmt::format("one of {}", fmt::join(words, ", ")));
}

std::int64_t fullest_device(const Plan& plan) {
  std::int64_t most = 0;
  for (const StagePrediction& stage : plan.prediction.stages) most = std::max(most, stage.memory.total);
  return most;
}

/// Collects proposals, keeps the fastest that fits, and remembers what became of the others.
class Contest {
 public:
  Contest(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options, Log& log)
      : model_(model), costs_(costs), options_(options), log_(log), end_s_(now_s() + options.time_limit_s) {
    devices_ = options.devices > 0 ? options.devices : costs.cluster().devices();
    schedule_ = schedule_from_name(options.schedule);
  }

  Plan run() {
    if (options_.pin) {
      check_batch(options_.pin->micro_batches);
      check_pin(*options_.pin, *planning(options_.pin->micro_batches).graph, costs_.cluster().devices());
      run_pinned(*options_.pin);
    } else {
      for (const int micro_batches : micro_batch_counts()) run_with(micro_batches);
    }
    return result();
  }

 private:
  bool wants(const std::string& method) const { return options_.method == "auto" || options_.method == method; }
  bool out_of_time() const { return now_s() > end_s_; }

  void check_batch(int micro_batches) const {
    if (model_.batch % micro_batches != 0)
      throw Error(ErrorKind::usage, fmt::format("a batch of {} does not divide into {} micro-batches", model_.batch, micro_batches),
                  "a divisor of the batch");
  }

  std::vector<int> micro_batch_counts() const {
    if (options_.micro_batches > 0) {
      check_batch(options_.micro_batches);
      return {options_.micro_batches};
    }
    return alpa::micro_batch_counts(model_.batch, devices_);
  }

  const PlanningGraph& planning(int micro_batches) {
    auto known = graphs_.find(micro_batches);
    if (known == graphs_.end()) {
      known = graphs_.emplace(micro_batches, std::pair<Graph, PlanningGraph>{}).first;
      known->second.first = model_.graph(model_.batch / micro_batches);
      known->second.second = prepare(known->second.first);
    }
    return known->second.second;
  }

  void run_with(int micro_batches) {
    if (out_of_time()) {
      log_.warning(fmt::format("time limit of {} reached; {} micro-batches were not tried", seconds_text(options_.time_limit_s), micro_batches));
      return;
    }
    const PlanningGraph& graph = planning(micro_batches);
    for (const std::string& method : method_names())
      if (wants(method))
        for (PinnedPlan& pinned : baseline_plans(method, *graph.graph, devices_, costs_.cluster().devices_per_node, micro_batches, schedule_))
          run_pinned(std::move(pinned));
    if (wants("intra-only")) search(graph, micro_batches, "intra-only");
    if (wants("inter-only")) search(graph, micro_batches, "inter-only");
    if (wants("search") && options_.method != "intra-only") search(graph, micro_batches, "search");
  }

  void search(const PlanningGraph& graph, int micro_batches, const std::string& method) {
    SearchSpace space;
    space.devices = devices_;
    space.micro_batches = micro_batches;
    space.schedule = schedule_;
    if (options_.rematerialize != "auto") space.rematerialize = {options_.rematerialize == "always"};
    if (method == "intra-only") space.most_stages = 1;
    if (method == "inter-only") {
      space.single_devices = true;
      space.least_stages = devices_;
    }
    SearchShortfall shortfall;
    const double begin = now_s();
    std::vector<Proposal> proposals = search_stages(graph, space, costs_, shortfall);
    log_.debug(fmt::format("{}, {} micro-batches: {} proposals in {}", method, micro_batches, proposals.size(), seconds_text(now_s() - begin)));
    for (const Proposal& proposal : proposals) consider(graph, proposal.requests, proposal.solutions, method);
    if (proposals.empty() && shortfall.least_memory > 0) {
      remember(fmt::format("{}, {} micro-batches", method, micro_batches), 0, shortfall.least_memory,
               fmt::format("layers {} to {} need {} at least", shortfall.first_layer, shortfall.end_layer - 1, bytes_text(static_cast<double>(shortfall.least_memory))));
      note_shortfall(shortfall.first_layer, shortfall.end_layer, shortfall.least_memory);
    }
  }

  void run_pinned(PinnedPlan pinned) {
    const PlanningGraph& graph = planning(pinned.micro_batches);
    std::vector<StageSolution> solutions;
    const int stages = static_cast<int>(pinned.stages.size());
    for (int s = 0; s < stages; ++s) {
      StageRequest& request = pinned.stages[static_cast<std::size_t>(s)];
      request.micro_batches = pinned.micro_batches;
      request.in_flight = most_in_flight(schedule_of(pinned.schedule, s, stages, pinned.micro_batches));
      if (options_.rematerialize == "always") request.rematerialize = true;
      StageSolution solution = solve_stage(graph, request, costs_, {});
      if (!solution.feasible && solution.least_memory > 0 && options_.rematerialize == "auto" && !request.rematerialize) {
        request.rematerialize = true;
        solution = solve_stage(graph, request, costs_, {});
      }
      if (!solution.feasible) {
        remember(pinned.method, 0, solution.least_memory, fmt::format("stage {}: {}", s, solution.why_not));
        if (solution.least_memory > 0) note_shortfall(request.first_layer, request.end_layer, solution.least_memory);
        return;
      }
      solutions.push_back(std::move(solution));
    }
    consider(graph, pinned.stages, solutions, pinned.method, pinned.schedule);
  }

  void consider(const PlanningGraph& graph, const std::vector<StageRequest>& requests, const std::vector<StageSolution>& solutions,
                const std::string& method) {
    consider(graph, requests, solutions, method, schedule_);
  }

  void consider(const PlanningGraph& graph, const std::vector<StageRequest>& requests, const std::vector<StageSolution>& solutions,
                const std::string& method, ScheduleKind schedule) {
    Plan plan = assemble(graph, requests, solutions, schedule, costs_.cluster());
    plan.model_name = model_.name;
    plan.model_toml = model_.toml;
    plan.method = method;
    check_plan(plan, *graph.graph);
    predict(plan, *graph.graph, costs_);
    if (requests.size() == 1) plan.prediction.lower_bound_s = solutions[0].lower_bound_s;
    const std::string name = fmt::format("{}: {} stage{}, {} micro-batch{}", method, requests.size(), requests.size() == 1 ? "" : "s",
                                         plan.micro_batches, plan.micro_batches == 1 ? "" : "es");
    const std::int64_t fullest = fullest_device(plan), limit = costs_.cluster().memory_bytes;
    if (fullest > limit) {
      remember(name, 0, fullest, fmt::format("needs {} more per device", bytes_text(static_cast<double>(fullest - limit))));
      note_shortfall(0, static_cast<int>(graph.graph->layers.size()), fullest);
      return;
    }
    if (plan.devices() != devices_ && options_.method == "auto" && !options_.pin) {  // a job of that many ranks could not run it
      remember(name, plan.prediction.step_s, fullest, fmt::format("for comparison: --devices {}", plan.devices()));
      return;
    }
    remember(name, plan.prediction.step_s, fullest, "slower");
    if (!best_ || plan.prediction.step_s < best_->prediction.step_s) {
      best_ = std::move(plan);
      best_name_ = name;
    }
  }

  void remember(const std::string& method, double step_s, std::int64_t memory, const std::string& verdict) {
    candidates_.push_back({method, step_s, memory, verdict});
  }

  void note_shortfall(int first, int end, std::int64_t least) {
    if (least_memory_ == 0 || least < least_memory_) {
      least_memory_ = least;
      least_range_ = {first, end};
    }
  }

  Plan result() {
    if (!best_) {
      if (candidates_.empty() || least_memory_ == 0)
        throw Error(ErrorKind::infeasible, candidates_.empty() ? fmt::format("method '{}' has no plan for this model on {} devices", options_.method, devices_)
                                                               : fmt::format("no plan: {}", candidates_.front().verdict),
                    "alpa-plan --method auto, or other --devices and --micro-batches");
      const std::int64_t limit = costs_.cluster().memory_bytes;
      throw Error(ErrorKind::infeasible,
                  fmt::format("no plan fits: the stage of layers {} to {} needs {} per device at least, {} is there: {} short", least_range_.first,
                              least_range_.second - 1, bytes_text(static_cast<double>(least_memory_)), bytes_text(static_cast<double>(limit)),
                              bytes_text(static_cast<double>(least_memory_ - limit))),
                  "more devices, more micro-batches, a smaller batch, or --rematerialize auto");
    }
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return (a.step_s > 0) != (b.step_s > 0) ? a.step_s > 0 : a.step_s < b.step_s;
    });
    for (Candidate& candidate : candidates_)
      if (candidate.method == best_name_ && candidate.step_s == best_->prediction.step_s) {
        candidate.verdict = "chosen";
        break;
      }
    best_->prediction.candidates = std::move(candidates_);
    return std::move(*best_);
  }

  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  Log& log_;
  double end_s_;
  int devices_ = 1;
  ScheduleKind schedule_ = ScheduleKind::one_f_one_b;
  std::map<int, std::pair<Graph, PlanningGraph>> graphs_;  ///< by micro-batches; nodes keep their addresses
  std::optional<Plan> best_;
  std::string best_name_;
  std::vector<Candidate> candidates_;
  std::int64_t least_memory_ = 0;
  std::pair<int, int> least_range_{0, 0};
};

}  // namespace

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  verify(program, graph);
  const Timeline timeline = simulate(program, costs);
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.stages.clear();
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageTime& t = timeline.stages[s];
    plan.prediction.stages.push_back({t.compute_s, t.collective_s, t.transfer_s, t.idle_s, program.stages[s].memory});
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
    throw Error(ErrorKind::usage, fmt::format("{} devices asked for, the cluster has {}", options.devices, costs.cluster().devices()));
  return Contest(model, costs, options, log).run();
}

}  // namespace alpa
