#include "libalpa/trainer/train.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/first_rank.h"
#include "libalpa/checkpoint/run_folder.h"
#include "libalpa/device/host_machine.h"
#include "libalpa/graph/lossy_gradients.h"
#include "libalpa/kernels/element_types.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/runtime/memory_there.h"
#include "libalpa/trainer/introduction.h"
#include "libalpa/trainer/recent_steps.h"
#include "libalpa/trainer/run_checkpoints.h"
#include "libalpa/trainer/run_files.h"
#include "libalpa/trainer/run_memory.h"
#include "libalpa/trainer/run_needs.h"
#include "libalpa/trainer/step_reference.h"
#include "libalpa/trainer/step_runner.h"
#include "libalpa/trainer/stop.h"
#include "libalpa/trainer/traced_steps.h"
#include "libalpa/trainer/training_data.h"

namespace alpa {
namespace {

class Run {
 public:
  Run(const Plan& plan, const Graph& graph, const TrainingOptions& options, const TrainSettings& settings,
      const TrainRanks& ranks, const StopRequest& stop, const Provenance& provenance, Log& log,
      bool is_planned_here)
      : plan_(plan),
        graph_(graph),
        options_(options),
        settings_(settings),
        ranks_(ranks),
        provenance_(provenance),
        log_(log),
        control_stream_(ranks.host.make_stream()),
        stop_(settings.run_dir, stop_limits(settings.end_time_s, settings.max_hours), stop,
              ranks.control.rank() == 0, seconds_since_1970),
        total_steps_(settings.steps > 0 ? settings.steps : options.steps),
        reference_(step_reference(plan, graph, float_type(options.precision),
                                  is_emulated() ? "" : ranks.device.description(), is_planned_here)),
        training_(lower(graph, plan, Purpose::train, kind_of_kernels())),
        evaluation_(lower(graph, plan, Purpose::evaluate, kind_of_kernels())),
        data_(open_training_data(settings.data, graph, options,
                                 settings.evaluation_data.empty() ? SampleOrder::usual_held_out : 0,
                                 settings.graphs, total_steps_)) {
    if (!settings.evaluation_data.empty())
      evaluation_data_ = open_training_data(settings.evaluation_data, graph, options, 1, settings.graphs);
    verify(training_);
    verify(evaluation_);
    const Program* const programs[] = {&training_, &evaluation_};
    memory_ = rank_memory(graph_, programs, *data_.reader, held_out_reader());
  }

  int run() {
    if (is_emulated()) check_emulation();
    if (training_.defers_updates || training_.has_states_at_servers()) check_overlapping_steps(settings_);
    introduce();
    check_element_types(ranks_.device, graph_);
    const MemoryCheck memory = check_memory(training_, graph_, memory_, ranks_, settings_, *control_stream_);
    shortfall(memory.shortfall,
              "fewer ranks on a node, more memory for the job (srun --mem), or a plan for more ranks");
    if (!is_emulated()) log_.info(memory.saving_text);
    if (!settings_.dry_run) first_rank([&] { files_.emplace(settings_.run_dir, provenance_, log_); });
    const std::filesystem::path checkpoint =
        is_emulated() ? std::filesystem::path()
                      : agreed_resume_point(settings_, ranks_, *control_stream_, log_);
    first_rank(
        [&] { identity_ = data_identity(data_, evaluation_data_ ? &*evaluation_data_ : nullptr, options_); });
    if (!checkpoint.empty()) check_checkpoint(checkpoint);
    if (settings_.dry_run) return dry_run();
    executor_ = std::make_unique<Executor>(graph_, std::vector<const Program*>{&training_, &evaluation_},
                                           ranks_.device, ranks_.data_plane,
                                           static_cast<std::uint64_t>(options_.seed), ranks_.costs);
    allocated_bytes_ = allocated_bytes();
    steps_ = std::make_unique<StepRunner>(graph_, *executor_, *data_.reader, held_out_reader(), options_);
    checkpoints_.emplace(settings_, memory.saving, graph_, *executor_, ranks_, *control_stream_, provenance_,
                         log_);
    start_states(checkpoint);
    ranks_.control.barrier();  // the folder changes when every rank has read what it resumes from
    traced_.emplace(settings_, plan_, graph_, training_, provenance_,
                    is_emulated() ? TimelineKind::emulated : TimelineKind::measured, step_, total_steps_);
    if (const std::string text = traced_->shortage(); !text.empty()) warn(text);
    first_rank([&] { prepare_files(); });
    return loop();
  }

 private:
  bool is_emulated() const { return ranks_.costs != nullptr; }
  /// What a plan's programs are lowered for.
  DeviceKind kind_of_kernels() const { return is_emulated() ? plan_.cluster.kind : ranks_.device.kind(); }

  void check_emulation() const {
    check_emulated(settings_);
    warn(
        "emulated: computations take their time and compute nothing; there are no losses, evaluations and "
        "checkpoints");
  }

  void first_rank(const std::function<void()>& body) { on_first_rank(ranks_.files, *control_stream_, body); }

  /// Of what all ranks find alike: other ranks' warnings are logged too.
  void warn(const std::string& text) const {
    if (ranks_.control.rank() == 0) log_.warning(text);
  }

  BatchReader& held_out_reader() const {
    return evaluation_data_ ? *evaluation_data_->reader : *data_.reader;
  }

  void introduce() const {
    const RunFacts run{plan_,
                       parameter_count(graph_),
                       ranks_.device.description(),
                       memory_.input,
                       data_,
                       evaluation_data_ ? &*evaluation_data_ : nullptr,
                       options_,
                       total_steps_,
                       lossy_gradients_text(graph_)};
    for (const std::string& line : introduction(run)) log_.info(line);
    const std::int64_t evaluate_every = is_emulated() ? 0 : settings_.evaluate_every;
    for (const std::string& warning : first_warnings(run, evaluate_every)) warn(warning);
  }

  /// A run may come to its end all the same: others give memory and disk space back. A dry run is to say no.
  void shortfall(const std::string& what, const char* hint) const {
    if (what.empty()) return;
    if (settings_.dry_run) throw Error(ErrorKind::allocation, what, hint);
    warn(what);
  }

  /// For one rank.
  void check_disk() const {
    if (is_emulated()) return;
    const DiskNeed need = disk_need_of_run(graph_, training_, settings_, step_, total_steps_);
    if (!need.fits())
      return shortfall(need.text(), "another --run-dir, a smaller --keep, or free some space");
    if (need.checkpoints == 0) return;
    if (need.free_bytes)
      log_.info("disk: " + need.text());
    else
      warn(need.text());
  }

  /// The largest arena of a rank, as allocated.
  std::int64_t allocated_bytes() const {
    const std::vector<std::int64_t> all =
        gather_numbers(ranks_.control, *control_stream_, executor_->arena_bytes());
    return *std::max_element(all.begin(), all.end());
  }

  /// That it is of this model and this data; before its tensors are read.
  void check_checkpoint(const std::filesystem::path& checkpoint) {
    const std::string warning = text_of_first_rank(ranks_.files, *control_stream_, [&] {
      const CheckpointFacts facts = load_checkpoint(checkpoint, graph_, {});
      step_ = facts.step;  // for the room that the saves from there on take
      return check_same_data(checkpoint, facts.samples, facts.data, identity_, settings_.accept_changed_data);
    });
    if (!warning.empty()) warn(warning);
  }

  int dry_run() {
    first_rank([&] {
      check_disk();
      check_trace(settings_);
    });
    log_.info(fmt::format(
        "dry run: plan, data, memory ({} per rank, and {} for samples) and disk space are in order; nothing "
        "was written",
        bytes_text(memory_.arena), bytes_text(memory_.input)));
    return 0;
  }

  void start_states(const std::filesystem::path& checkpoint) {
    if (is_emulated()) return;
    if (checkpoint.empty()) return initialize_states(*executor_, graph_, options_.seed);
    CheckpointFacts facts;
    in_step(fmt::format("loading '{}'", checkpoint.string()), [&] {
      read_together(ranks_.files, *control_stream_, [&](const BytesRead& read) {
        facts = load_states(*executor_, graph_, checkpoint, read);
      });
    });
    first_rank([&] {
      if (const int others = states_in_other_terms(checkpoint, graph_, executor_->state_terms()); others > 0)
        log_.info(fmt::format("{}: summed up, the checkpoint has other terms", count_text(others, "state")));
    });
    step_ = facts.step;
    samples_ = facts.samples;
    if (facts.loss_scale) steps_->set_loss_scale(*facts.loss_scale);
    if (facts.training_options != kept_options(options_))
      warn("the [training] table differs from that of the checkpoint; this run follows its plan's");
  }

  void prepare_files() {
    traced_->prepare();
    if (is_emulated()) return files_->prepare_emulated();
    files_->prepare(step_);
    check_disk();
  }

  void save(bool at_once) {
    if (is_emulated()) return stop_.saved();
    first_rank([&] { files_->prepare_save(step_); });
    checkpoints_->save({step_, samples_, identity_, kept_options(options_), steps_->loss_scale()}, at_once);
    stop_.saved();
  }

  /// What is known of a step by then (StepRunner::train).
  std::optional<StepMetrics> train_step() {
    const std::int64_t next = samples_ + options_.batch;
    const bool is_last = step_ + 1 == total_steps_;
    std::optional<StepMetrics> m =
        known([&] { return steps_->train(step_, samples_, is_last ? std::nullopt : std::optional(next)); });
    ++step_;
    samples_ = next;
    recent_.add(steps_->last_step_s());
    return m;
  }

  template <typename Step>
  std::optional<StepMetrics> known(const Step& step) {
    std::optional<StepMetrics> m;
    try {
      m = step();
    } catch (const Error& error) {
      // All ranks alike: the checkpoint that is still on its way is of before.
      if (error.kind() == ErrorKind::non_finite) checkpoints_->publish(step_);
      throw;
    }
    if (!m) return m;
    m->emulated = is_emulated();
    m->reference = reference_;
    m->memory_bytes = allocated_bytes_;
    if (files_) m->process_bytes = process_bytes();
    checkpoints_->report(*m);
    return m;
  }

  /// The step that was trained last, where `m` may be one before it.
  std::optional<StepMetrics> finished(std::optional<StepMetrics> m) {
    while (!steps_->knows_all_steps()) {
      if (m) note(*m);
      m = known([&] { return steps_->finish(); });
    }
    return m;
  }

  void note(const StepMetrics& m) {
    since_line_.add(m);
    if (files_) files_->metrics().add(m);
  }

  std::optional<StepMetrics> untraced_step() {
    std::optional<StepMetrics> m = train_step();
    if (traced_->has(step_ - 1)) first_rank([&] { traced_->add_between(step_, steps_->uncorrected_s()); });
    return m;
  }

  std::optional<StepMetrics> traced_step() {
    executor_->keep_timeline(true);
    std::optional<StepMetrics> m = train_step();
    auto rows = traced_->gather(step_, *executor_, ranks_.control, *control_stream_);
    executor_->keep_timeline(false);
    first_rank([&] { traced_->add(step_, steps_->uncorrected_s(), std::move(rows)); });
    return m;
  }

  std::optional<Evaluation> evaluate() {
    const std::optional<Evaluation> found = steps_->evaluate(step_, settings_.evaluation_batches);
    if (found)
      log_.info(
          fmt::format("step {}: held-out loss {:.4f}{}", step_, found->loss, numbers_text(found->of_model)));
    return found;
  }

  /// Ranks look for reasons to stop together, about twice a second (more seldom where they need not keep
  /// step, as they wait for each other then): the greatest reason and the longest step count. A checkpoint
  /// that all ranks have written by then gets its name.
  StopReason agreed_reason() {
    if (step_ < next_look_) return StopReason::none;
    const bool keeps_step = !training_.has_states_at_servers();
    const double median_s = recent_.median_s(), between_s = keeps_step ? 0.5 : 5,
                 end_s = keeps_step ? median_s : (training_.staleness + 1) * median_s + between_s;
    std::int32_t values[3] = {static_cast<std::int32_t>(stop_.local_reason(end_s, checkpoints_->save_s())),
                              static_cast<std::int32_t>(std::min(median_s * 1e6, 2e9)),
                              checkpoints_->is_writing() ? 1 : 0};
    ranks_.control.all_reduce(*control_stream_, values, 3, DType::i32, Reduction::max);
    const auto steps = static_cast<std::int64_t>(between_s * 1e6 / std::max(values[1], 1));
    next_look_ = step_ + std::clamp<std::int64_t>(steps, 1, keeps_step ? 100 : 50);
    if (values[2] == 0) checkpoints_->publish(step_);
    return static_cast<StopReason>(values[0]);
  }

  void report_prediction() const {
    if (const std::string times = step_times_text(plan_.prediction.step_s, recent_); !times.empty())
      log_.info(fmt::format("step time: {}; arena: predicted {}, allocated {}", times,
                            bytes_text(memory_.arena), bytes_text(allocated_bytes_)));
    for (const std::string& text : {rows_text(executor_->sent_share_of_rows()), traced_->slowest_text()})
      if (!text.empty()) log_.info(text);
  }

  int loop() {
    double reported_s = monotonic_s();
    if (step_ >= total_steps_)
      warn(fmt::format("nothing is left to do: the run has {} of {} (--steps)", count_text(step_, "step"),
                       total_steps_));
    while (step_ < total_steps_) {
      std::optional<StepMetrics> m = traced_->has(step_ + 1) ? traced_step() : untraced_step();
      if (is_due(settings_.evaluate_every) && !is_emulated()) {
        m = finished(std::move(m));
        m->evaluation = evaluate();
      }
      const StopReason reason = agreed_reason();
      const bool stops = ends_run(reason) && step_ < total_steps_;
      const bool at_once = reason != StopReason::none || step_ == total_steps_,
                 saves = at_once || is_due(settings_.checkpoint_every);
      if (saves) m = finished(std::move(m));
      if (m) note(*m);
      if (saves) save(at_once);
      if (m && (saves || monotonic_s() - reported_s >= settings_.progress_s)) {
        const double left_s = static_cast<double>(total_steps_ - step_) * recent_.median_s();
        log_.info(progress_line(*m, std::exchange(since_line_, {}), total_steps_, left_s) +
                  (saves && !is_emulated() ? checkpoints_->saved_text() : ""));
        reported_s = monotonic_s();
      }
      if (stops) {
        first_rank([&] { traced_->finish(); });
        report_prediction();
        log_.info(fmt::format("stopped after step {} because of {}; the same command {}", step_,
                              stop_reason_text(reason),
                              is_emulated() ? "starts over" : "goes on from there"));
        return static_cast<int>(ErrorKind::stopped_early);
      }
    }
    report_prediction();
    log_.info(fmt::format("done: {}{}", count_text(step_, "step"), is_emulated() ? ", emulated" : ""));
    return 0;
  }

  /// Whether something done every so many steps (0: never) follows this one.
  bool is_due(std::int64_t every) const { return every > 0 && step_ % every == 0; }

  const Plan& plan_;
  const Graph& graph_;
  const TrainingOptions& options_;
  const TrainSettings& settings_;
  const TrainRanks& ranks_;
  const Provenance& provenance_;
  Log& log_;
  std::unique_ptr<Stream> control_stream_;
  StopConditions stop_;
  std::int64_t total_steps_;
  StepReference reference_;
  Program training_, evaluation_;
  TrainingData data_;
  std::optional<TrainingData> evaluation_data_;
  RankMemory memory_;
  DataIdentity identity_;  ///< on rank 0
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StepRunner> steps_;
  std::int64_t allocated_bytes_ = 0;  ///< by the rank with the largest arena
  std::optional<RunFiles> files_;     ///< on rank 0
  std::optional<TracedSteps> traced_;
  RecentSteps recent_;
  StepTotals since_line_;
  std::int64_t step_ = 0, samples_ = 0, next_look_ = 0;  ///< done; the next sample has this number; a step
  std::optional<RunCheckpoints> checkpoints_;
};

}  // namespace

int train(const Plan& plan, const Graph& graph, const TrainingOptions& options, const TrainSettings& settings,
          const TrainRanks& ranks, const StopRequest& stop, const Provenance& provenance, Log& log) {
  const std::string warning =
      check_machines(plan, gather_machines(settings.node, ranks.device, ranks.host, ranks.control));
  if (!warning.empty() && ranks.control.rank() == 0) log.warning(warning);
  check_program(plan, graph);
  return Run(plan, graph, options, settings, ranks, stop, provenance, log, warning.empty()).run();
}

}  // namespace alpa
