#include "apps/tune_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "apps/models.h"
#include "apps/plan_costs.h"
#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/base/text_table.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/first_rank.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/tuning/plan_choices.h"
#include "libalpa/planner/tuning/tuning_file.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/trainer/stop.h"

namespace alpa {
namespace {

/// Losses after the same steps differ by rounding alone; what differs by more than this part is no plan of
/// the model.
constexpr double kSameLoss = 0.02;

/// How the method of a tuned plan begins.
const std::string kTuned = "tuned ";

std::string text_of(const TuningChoice& choice) { return fmt::format("{}", fmt::join(choice, " ")); }

TuningChoice choice_of(const std::string& text) {
  TuningChoice choice;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    choice.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    at = end;
  }
  return choice;
}

/// What rank 0 knows of a job: the search, and its file.
class TuningJob {
 public:
  TuningJob(const TuneSettings& settings, const PlannedModel& planned, const PlanChoices& choices,
            const CostModel& costs, const Provenance& provenance, Log& log)
      : settings_(settings),
        planned_(planned),
        choices_(choices),
        costs_(costs),
        provenance_(provenance),
        log_(log),
        before_(existing()),
        job_(job_of(choices.space(), costs)),
        search_(choices.space(), settings.search, earlier()) {
    log_.info(fmt::format("{} to choose: {:.3g} candidates; {}",
                          count_text(std::ssize(choices_.genes()), "thing"), search_.space().size(),
                          count_text(std::ssize(search_.space().presets), "preset")));
    resume();
  }

  bool has_more() const { return (!is_done() && !is_exhausted_) || !search_.to_confirm().empty(); }
  bool is_done() const { return std::ssize(search_.trials()) >= settings_.trials; }

  /// The next to be run; "": there is none. What the simulator says cannot run is noted and passed over. Last
  /// come those whose times decide, once more.
  std::string next() {
    while (!is_done()) {
      std::optional<TuningTrial> trial = search_.next();
      if (!trial) {
        is_exhausted_ = true;
        break;
      }
      if (trial->fault.empty()) {
        running_ = std::move(*trial);
        running_->fault = begun_before_.contains(running_->choice) ? kTrialBegunAgain : kTrialBegun;
        begun_s_ = monotonic_s();
        write();
        return text_of(running_->choice);
      }
      note(std::move(*trial));
    }
    const std::vector<int> again = search_.to_confirm();
    if (again.empty()) {
      write();  // what could not be run may have come last
      return "";
    }
    confirmed_ = again.front();
    return text_of(search_.trials()[confirmed_].choice);
  }

  void finished(const TimedSteps& timed) {
    if (!running_) return confirmed(timed);
    TuningTrial trial = *std::exchange(running_, std::nullopt);
    trial.fault = timed.fault;
    trial.measured_s = timed.median_s;
    trial.spread_s = timed.spread_s;
    if (trial.fault.empty()) trial.fault = loss_fault(timed);
    begun_before_.erase(trial.choice);
    spent_s_ += monotonic_s() - begun_s_;
    ++spent_on_;
    note(std::move(trial));
    write();
  }

  /// Throws where no candidate could be run.
  void report() const {
    if (search_.fastest() < 0 && !has_more())
      throw Error(ErrorKind::infeasible,
                  search_.trials().empty()
                      ? std::string("there is no candidate to run")
                      : fmt::format("none of {} could be run; the last one {}",
                                    count_text(std::ssize(search_.trials()), "candidate"),
                                    search_.trials().back().fault),
                  "a plan that fits the machines, or more --trials");
    const RankingAccuracy accuracy = search_.accuracy();
    const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
    if (accuracy.pairs > 0)
      fmt::print("pairs of held-out trials in the right order, of {}; the residual is {}\n{}", accuracy.pairs,
                 accuracy.residual_is_better() ? "used" : "not used",
                 text_table({{"  simulator", percent(accuracy.simulator)},
                             {"  with learned residual", percent(accuracy.residual)},
                             {"  plain linear model", percent(accuracy.linear)}},
                            {1}));
    if (search_.fastest() < 0) return;
    const TuningTrial& best = search_.trials()[search_.fastest()];
    fmt::print("fastest: {} ({}), predicted {}\n", step_time_text(best.measured_s, best.spread_s),
               best.origin, seconds_text(best.known.predicted_s));
    if (search_.fastest_preset() >= 0) {
      const TuningTrial& preset = search_.trials()[search_.fastest_preset()];
      fmt::print("{:.3f}x over the best preset, {}: {}\n", preset.measured_s / best.measured_s, preset.origin,
                 step_time_text(preset.measured_s, preset.spread_s));
    }
  }

  const TuningSearch& search() const { return search_; }

 private:
  void confirmed(const TimedSteps& timed) {
    const TuningTrial& trial = search_.trials()[confirmed_];
    const std::string fault = timed.fault.empty() ? loss_fault(timed) : timed.fault;
    const std::string which = fmt::format("trial {} ({}) once more", confirmed_ + 1, trial.origin);
    if (fault.empty()) {
      search_.report_again(confirmed_, timed.median_s, timed.spread_s);
      log_.info(fmt::format("{}: {}; on average {}", which, step_time_text(timed.median_s, timed.spread_s),
                            seconds_text(trial.measured_s)));
    } else {
      search_.report_failed(confirmed_, fault);
      log_.info(fmt::format("{}: {}", which, fault));
    }
    write();
  }

  /// What is wrong with the loss after the steps of a trial; "": nothing.
  std::string loss_fault(const TimedSteps& timed) {
    if (!timed.loss) return "";
    if (!loss_) loss_ = timed.loss;
    if (std::abs(*timed.loss - *loss_) <= kSameLoss * std::abs(*loss_)) return "";
    return fmt::format("ends with loss {:.4f}, the first trial with {:.4f}", *timed.loss, *loss_);
  }

  std::optional<TuningRecord> existing() const {
    std::error_code ignored;
    if (!std::filesystem::exists(settings_.out, ignored)) return std::nullopt;
    return read_tuning(settings_.out);
  }

  bool begins_anew() const { return settings_.anew && before_ && before_->job != job_; }

  EarlierTrials earlier() const {
    if (!settings_.transfer_from.empty())
      return earlier_trials(settings_.transfer_from, read_tuning(settings_.transfer_from),
                            plan_feature_names());
    if (begins_anew()) return earlier_trials(settings_.out, *before_, plan_feature_names());
    return {};
  }

  void resume() {
    if (!before_) return;
    if (begins_anew()) {
      log_.info(fmt::format("'{}' has {} of another plan: starts over, and learns from them",
                            settings_.out.string(), count_text(std::ssize(before_->trials), "trial")));
      return;
    }
    check_continues(settings_.out, *before_, search_.space(), job_);
    for (TuningTrial trial : before_->trials) {
      if (trial.fault == kTrialBegun) {  // the job ended during it, perhaps because of it
        begun_before_.emplace(trial.choice, trial);
        continue;
      }
      if (trial.fault == kTrialBegunAgain) trial.fault = "the job ended during it, twice";
      search_.report(std::move(trial));
    }
    log_.info(fmt::format("goes on after {} of '{}'", count_text(std::ssize(search_.trials()), "trial"),
                          settings_.out.string()));
  }

  void note(TuningTrial trial) {
    std::string line =
        fmt::format("trial {} of {} ({}): ", search_.trials().size() + 1, settings_.trials, trial.origin);
    line += trial.is_measured()
                ? fmt::format("{}, predicted {}", step_time_text(trial.measured_s, trial.spread_s),
                              seconds_text(trial.known.predicted_s))
                : trial.fault;
    search_.report(std::move(trial));
    if (search_.fastest() >= 0)
      line += fmt::format("; fastest {}", seconds_text(search_.trials()[search_.fastest()].measured_s));
    if (spent_on_ > 0 && !is_done())
      line += fmt::format("; {} left",
                          seconds_text(spent_s_ / spent_on_ *
                                       static_cast<double>(settings_.trials - std::ssize(search_.trials()))));
    log_.info(line);
  }

  /// That of the fastest trial, and what is predicted of it: found anew where that is another one.
  Plan fastest_plan() {
    if (fastest_of_ == search_.fastest()) return fastest_plan_;
    fastest_of_ = search_.fastest();
    const TuningTrial& best = search_.trials()[search_.fastest()];
    Plan plan = choices_.plan_of(best.choice);
    plan.method =
        planned_.plan.method.starts_with(kTuned) ? planned_.plan.method : kTuned + planned_.plan.method;
    predict(plan, planned_.graph, costs_);
    predict_sureness(plan, planned_.graph, costs_);
    plan.program_fingerprint = program_fingerprint(lower(planned_.graph, plan), planned_.graph);
    return fastest_plan_ = std::move(plan);
  }

  /// The plan of the fastest trial, or as it was given, with what the trials say of it.
  Plan best_plan() {
    if (search_.fastest() < 0) return planned_.plan;
    const TuningTrial& best = search_.trials()[search_.fastest()];
    Plan plan = fastest_plan();
    const MeshIndex busiest = busiest_mesh(plan.prediction);
    plan.prediction.candidates = {{plan.method, plan.prediction.step_s, best.known.memory_bytes,
                                   "chosen: measured " + step_time_text(best.measured_s, best.spread_s),
                                   plan.prediction.meshes[busiest]}};
    for (const TuningTrial& trial : search_.trials())
      if (trial.is_preset() && &trial != &best)
        plan.prediction.candidates.push_back(
            {trial.origin, trial.fault.empty() ? trial.known.predicted_s : 0, trial.known.memory_bytes,
             trial.is_measured() ? "slower: measured " + step_time_text(trial.measured_s, trial.spread_s)
                                 : trial.fault});
    return plan;
  }

  void write() {
    TuningRecord record = record_of(search_, job_);
    for (const auto& [choice, trial] : begun_before_)
      if (!running_ || running_->choice != choice) record.trials.push_back(trial);
    if (running_) record.trials.push_back(*running_);
    write_tuned_plan(settings_.out, best_plan(), planned_.graph, record, provenance_);
  }

  const TuneSettings& settings_;
  const PlannedModel& planned_;
  const PlanChoices& choices_;
  const CostModel& costs_;
  const Provenance& provenance_;
  Log& log_;
  std::optional<TuningRecord> before_;  ///< in the file
  std::string job_;
  TuningSearch search_;
  std::optional<TuningTrial> running_;
  int fastest_of_ = -1;  ///< a trial; its plan is the following
  Plan fastest_plan_;
  int confirmed_ = -1;  ///< the trial that is run once more, where none is running
  std::map<TuningChoice, TuningTrial> begun_before_;  ///< and did not end; not tried again yet
  bool is_exhausted_ = false;
  std::optional<double> loss_;  ///< of the first trial
  double begun_s_ = 0, spent_s_ = 0;
  int spent_on_ = 0;
};

}  // namespace

void describe(TuneSettings& s, OptionsVisitor& visit) {
  visit.field("trials", s.trials,
              "candidates to try in all, those of an earlier run of this command among them",
              between(1, 100'000));
  describe(s.search, visit);
  describe(s.trial, visit);
  visit.field(
      "anew", s.anew,
      "where --out has trials of another plan, start over and learn from them, as --transfer-from does");
  visit.field("max_hours", s.max_hours,
              "stop (exit 75) before that many hours have passed; the same command goes on. 0: no limit",
              at_least(0));
  visit.field("end_time", s.end_time_s,
              "end of the job in seconds since 1970: stop before it, likewise; 0: not known", at_least(0));
  describe(s.device, visit);
}

int tune_plan(TuneSettings settings, const ParallelRun& rank, const Provenance& provenance) {
  const PlannedModel planned = read_planned_model(settings.plan);
  if (!planned.plan.prediction.constraints.empty())
    throw Error(ErrorKind::input,
                fmt::format("'{}' was planned under constraints ({}), which tuning does not support",
                            settings.plan.string(), planned.plan.prediction.constraints.front().text),
                "a plan without constraints");
  if (planned.plan.has_states_at_servers())
    throw Error(ErrorKind::input,
                fmt::format("'{}' has its states at servers, which tuning tries nothing else for",
                            settings.plan.string()),
                "a plan without --staleness");
  if (settings.end_time_s <= 0) settings.end_time_s = rank.environment.job_end_time_s;
  if (!planned.model.graphs.empty()) settings.trial.graphs = planned.model.graphs[0].batching;
  const bool emulated = settings.device.device == DeviceKind::emulated;
  const PlanCosts costs = costs_of(planned.plan, settings.profile);
  const RankDevice own =
      make_rank_device(settings.device, rank.session, rank.environment, &planned.plan.cluster);
  const std::unique_ptr<Device> host = make_cpu_device(own.threads);
  const std::unique_ptr<Communicator> control = rank.session.make_communicator(*host);
  const std::unique_ptr<Stream> stream = host->make_stream();
  const TrainRanks ranks{*own.device,
                         *own.world,
                         *host,
                         *control,
                         *control,
                         emulated ? &costs.costs : nullptr,
                         rank.session.ranks_on_node()};
  const bool is_first = control->rank() == 0;
  const std::string warning =
      check_machines(planned.plan, gather_machines(rank.session.node(), *own.device, *host, *control));
  for (const std::string& text : {warning, costs.warning})
    if (is_first && !text.empty()) rank.log.warning(text);

  const PlanChoices choices(planned.plan, planned.graph, costs.costs);
  TrialRunner trials(planned.graph, planned.model.training, settings.trial, ranks);
  StopConditions stop(std::filesystem::absolute(settings.out).parent_path(),
                      stop_limits(settings.end_time_s, settings.max_hours), rank.stop, is_first,
                      seconds_since_1970);
  std::optional<TuningJob> job;
  on_first_rank(*control, *stream,
                [&] { job.emplace(settings, planned, choices, costs.costs, provenance, rank.log); });
  double longest_s = 0;  // of a turn: search, trial, and file
  for (;;) {
    const double begun_s = monotonic_s();
    std::int32_t reason = static_cast<std::int32_t>(stop.local_reason(longest_s, 0));
    control->all_reduce(*stream, &reason, 1, DType::i32, Reduction::max);
    const std::string next = text_of_first_rank(*control, *stream, [&] {
      return ends_run(static_cast<StopReason>(reason)) && job->has_more() ? "stop" : job->next();
    });
    if (next.empty()) break;
    if (next == "stop") {
      if (is_first) {
        job->report();
        rank.log.info(fmt::format("stopped after {} because of {}; the same command goes on from there",
                                  count_text(std::ssize(job->search().trials()), "trial"),
                                  stop_reason_text(static_cast<StopReason>(reason))));
      }
      return static_cast<int>(ErrorKind::stopped_early);
    }
    const TimedSteps timed = trials.run(choices.plan_of(choice_of(next)));
    on_first_rank(*control, *stream, [&] { job->finished(timed); });
    longest_s = std::max(longest_s, monotonic_s() - begun_s);
  }
  on_first_rank(*control, *stream, [&] { job->report(); });
  return 0;
}

}  // namespace alpa
