#include "libalpa/trainer/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/program/lower.h"
#include "libalpa/program/trace.h"
#include "libalpa/program/verify.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/checkpoint.h"
#include "libalpa/trainer/executor.h"
#include "libalpa/trainer/initial_state.h"
#include "libalpa/trainer/learning_rate.h"
#include "libalpa/trainer/metrics.h"
#include "libalpa/trainer/run_folder.h"
#include "libalpa/trainer/stop.h"

namespace alpa {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Extent of the dimension that token ids index.
std::int64_t vocabulary_of(const Graph& graph) {
  for (const Input& input : graph.inputs) {
    if (input.kind != InputKind::tokens) continue;
    for (const Node& node : graph.nodes)
      if (node.operands.size() == 2 && node.operands[1] == input.value) return value_of(graph, node.operands[0]).type.shape[0];
  }
  throw Error(ErrorKind::input, "the model looks up no tokens", "an embedding of the input 'tokens'");
}

class Run {
 public:
  Run(const Plan& plan, const Graph& graph, const TrainingOptions& options, const TrainSettings& settings, const TrainRanks& ranks,
      const StopRequest& stop, const Provenance& provenance, Log& log)
      : plan_(plan), graph_(graph), options_(options), settings_(settings), ranks_(ranks), provenance_(provenance), log_(log),
        rank_(ranks.control.rank()), total_steps_(settings.steps > 0 ? settings.steps : options.steps),
        training_(lower(graph, plan)), evaluation_(lower(graph, plan, Purpose::evaluate)),
        source_(open_tokens(settings.data)), reader_(*source_, SampleOrder(source_->size(), options), options, vocabulary_of(graph)),
        control_stream_(ranks.host.make_stream()),
        conditions_(settings.run_dir, limits(), stop, rank_ == 0, seconds_since_1970) {
    verify(training_, graph_);
    verify(evaluation_, graph_);
    check_tokens(*source_, data_vocabulary(options.objective, vocabulary_of(graph)));
  }

  int run() {
    log_.info(fmt::format("{}: {} parameters, {} on {} rank{}", plan_.model_name, parameter_count(graph_), ranks_.device.description(),
                          ranks_.control.size(), ranks_.control.size() == 1 ? "" : "s"));
    log_.info(fmt::format("data: {}, {} samples a step of {} tokens, {} windows to train on", source_->description(), options_.batch,
                          options_.sequence, reader_.order().windows(Split::training)));
    check_memory();
    if (settings_.dry_run) return dry_run();
    executor_ = std::make_unique<Executor>(graph_, std::vector<const Program*>{&training_, &evaluation_}, ranks_.device, ranks_.data_plane,
                                           static_cast<std::uint64_t>(options_.seed));
    start_states();
    if (rank_ == 0) prepare_run_folder(settings_.run_dir, step_, log_);
    ranks_.control.barrier();
    if (rank_ == 0) metrics_.emplace(settings_.run_dir, step_);
    return loop();
  }

 private:
  StopLimits limits() const {
    StopLimits limits;
    if (settings_.end_time_s > 0) limits.end_time_s = settings_.end_time_s;
    if (settings_.max_hours > 0) limits.max_run_s = settings_.max_hours * 3600;
    return limits;
  }

  std::int64_t arena_bytes() const {
    std::int64_t most = 0;
    for (const Program* program : {&training_, &evaluation_})
      for (const StageProgram& stage : program->stages) most = std::max(most, stage.memory.total);
    return most;
  }

  void check_memory() const {
    const bool shared = ranks_.device.kind() != DeviceKind::cuda;  // the ranks of a node have its memory in common, not its GPUs
    const std::int64_t there = ranks_.device.memory_bytes() / (shared ? std::max(settings_.ranks_on_node, 1) : 1);
    if (arena_bytes() > there)
      throw Error(ErrorKind::allocation, fmt::format("the plan takes {} per rank, {} is there", bytes_text(static_cast<double>(arena_bytes())), bytes_text(static_cast<double>(there))),
                  "plan with a smaller memory in the cluster, with more micro-batches, or for more ranks");
  }

  int dry_run() const {
    const int devices = plan_.devices();
    if (devices != ranks_.control.size())
      throw Error(ErrorKind::allocation, fmt::format("the plan is for {} ranks, this job has {}", devices, ranks_.control.size()), fmt::format("srun --ntasks {}", devices));
    log_.info(fmt::format("dry run: plan, data and memory ({} per rank) are in order; nothing was written", bytes_text(static_cast<double>(arena_bytes()))));
    return 0;
  }

  /// Host copies of this rank's tiles of the states, for checkpoints; `saving`: only what this rank writes.
  std::vector<HostTile> host_tiles(std::vector<std::vector<std::byte>>& memory, bool saving) const {
    std::vector<HostTile> tiles;
    for (const StateTile& tile : executor_->state_tiles()) {
      if (saving && !tile.writes) continue;
      memory.emplace_back(static_cast<std::size_t>(byte_count(tile.tile)));
      tiles.push_back({tile.state, tile.origin, tile.tile.shape, memory.back().data()});
    }
    return tiles;
  }

  void start_states() {
    const std::optional<FoundCheckpoint> found = find_resume_point(settings_.resume, settings_.run_dir, log_);
    std::vector<std::vector<std::byte>> memory;
    const std::vector<HostTile> tiles = host_tiles(memory, false);
    if (found) {
      const CheckpointFacts facts = load_checkpoint(found->path, graph_, tiles);
      step_ = facts.step;
    } else {
      for (const HostTile& tile : tiles)
        fill_initial_state(graph_, graph_.states[static_cast<std::size_t>(tile.state)], tile.origin, tile.shape, options_.seed, tile.values);
    }
    for (const HostTile& tile : tiles) executor_->write_state(tile.state, tile.values);
  }

  void save() {
    const double begin = now_s();
    if (metrics_) metrics_->sync();
    std::vector<std::vector<std::byte>> memory;
    const std::vector<HostTile> tiles = host_tiles(memory, true);
    for (const HostTile& tile : tiles) executor_->read_state(tile.state, tile.values);
    TrainingOptions options = options_;
    save_checkpoint(checkpoint_path(settings_.run_dir, step_), {step_, step_ * options_.batch, options_text(options)}, graph_, tiles,
                    provenance_, ranks_.native);
    saved_step_ = step_;
    checkpoint_s_ = now_s() - begin;
    if (rank_ == 0) keep_last(settings_.run_dir, step_, settings_.keep, log_);
    conditions_.saved();
    log_.info(fmt::format("saved step {} in {}", step_, seconds_text(checkpoint_s_)));
  }

  StepInputs fill(Split split, std::int64_t first_sample) {
    tokens_.resize(static_cast<std::size_t>(options_.batch * options_.sequence));
    targets_.resize(tokens_.size());
    reader_.fill(split, first_sample, tokens_, targets_);
    StepInputs inputs;
    inputs.tokens = tokens_;
    inputs.targets = targets_;
    return inputs;
  }

  /// One training step; returns its metrics.
  StepMetrics train_step() {
    StepMetrics m;
    const double begin = now_s();
    const std::int64_t first = step_ * options_.batch;
    StepInputs inputs = fill(Split::training, first);
    m.data_s = now_s() - begin;
    const auto targets = static_cast<double>(reader_.target_count(Split::training, first, options_.batch));
    inputs.loss_scale = static_cast<float>(1.0 / targets);
    const auto scalars = update_scalars(options_, step_);
    std::copy(scalars.begin(), scalars.end(), inputs.update_scalars);
    inputs.step = step_;
    const StepResult result = executor_->run(inputs);
    m.learning_rate = learning_rate(options_, step_);
    m.loss = result.loss_sum / targets;
    m.gradient_norm = result.gradient_norm;
    m.tokens = options_.batch * options_.sequence;
    m.samples_hash = reader_.order().samples_hash(first, options_.batch);
    m.step_s = now_s() - begin;
    if (!std::isfinite(m.loss) || !std::isfinite(m.gradient_norm))
      throw Error(ErrorKind::non_finite, fmt::format("step {}: loss {}, gradient norm {}", step_ + 1, m.loss, m.gradient_norm),
                  fmt::format("a lower learning rate or a longer warm-up; the newest checkpoint is of step {}", saved_step_));
    m.step = ++step_;
    m.flops = flops_;
    m.peak_flops_per_s = plan_.cluster.flops_per_s(DType::f32) * ranks_.control.size();
    if (options_.precision == Precision::bf16) m.peak_flops_per_s = plan_.cluster.flops_per_s(DType::bf16) * ranks_.control.size();
    m.peak_origin = plan_.profile_fingerprint.empty() ? "table" : "measured";
    m.memory_bytes = arena_bytes();
    step_times_.push_back(m.step_s);
    return m;
  }

  std::optional<double> evaluate() {
    const std::int64_t windows = reader_.order().windows(Split::held_out);
    const std::int64_t batches = std::min(settings_.evaluation_batches, windows / options_.batch);
    if (batches == 0) return std::nullopt;
    double loss = 0, targets = 0;
    for (std::int64_t b = 0; b < batches; ++b) {
      StepInputs inputs = fill(Split::held_out, b * options_.batch);
      inputs.step = step_;
      loss += executor_->run(inputs, 1).loss_sum;
      targets += static_cast<double>(reader_.target_count(Split::held_out, b * options_.batch, options_.batch));
    }
    log_.info(fmt::format("step {}: held-out loss {:.4f}", step_, loss / targets));
    return loss / targets;
  }

  double median_step_s() const {
    if (step_times_.empty()) return 0;
    std::vector<double> sorted(step_times_.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(step_times_.size(), 200)), step_times_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  /// Ranks look for reasons to stop together, about twice a second: the greatest reason and the longest step count.
  StopReason agreed_reason() {
    if (step_ < next_look_) return StopReason::none;
    std::int32_t values[2] = {static_cast<std::int32_t>(conditions_.local_reason(median_step_s(), checkpoint_s_)),
                              static_cast<std::int32_t>(std::min(median_step_s() * 1e6, 2e9))};
    ranks_.control.all_reduce(*control_stream_, values, 2, DType::i32, Reduction::max);
    next_look_ = step_ + std::clamp<std::int64_t>(static_cast<std::int64_t>(0.5e6 / std::max(values[1], 1)), 1, 100);
    return static_cast<StopReason>(values[0]);
  }

  void report_prediction() const {
    const double measured = median_step_s(), predicted = plan_.prediction.step_s;
    if (measured <= 0 || predicted <= 0) return;
    log_.info(fmt::format("step time: predicted {}, measured {} (median), ratio {:.2f}; arena: predicted {}, allocated {}", seconds_text(predicted),
                          seconds_text(measured), measured / predicted, bytes_text(static_cast<double>(arena_bytes())), bytes_text(static_cast<double>(executor_->arena_bytes()))));
  }

  void write_trace() {
    // The first rank of each stage tells its rows to rank 0 as plain numbers.
    std::vector<TimelineRow> rows;
    for (std::size_t s = 0; s < training_.stages.size(); ++s) {
      const int from = training_.stages[s].mesh.first_device;
      std::vector<double> numbers;
      if (rank_ == from)
        for (const TimelineRow& r : executor_->timeline())
          numbers.insert(numbers.end(), {double(r.stage), double(int(r.segment)), double(r.micro_batch), double(r.instruction), double(int(r.kind)), r.start_s, r.duration_s});
      double count = static_cast<double>(numbers.size());
      if (from != 0 && rank_ == from) {
        ranks_.control.send(*control_stream_, &count, sizeof count, 0);
        ranks_.control.send(*control_stream_, numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof(double)), 0);
        ranks_.control.wait_sends(*control_stream_);
      }
      if (rank_ != 0) continue;
      if (from != 0) {
        ranks_.control.receive(*control_stream_, &count, sizeof count, from);
        numbers.resize(static_cast<std::size_t>(count));
        ranks_.control.receive(*control_stream_, numbers.data(), static_cast<std::int64_t>(numbers.size() * sizeof(double)), from);
      }
      for (std::size_t i = 0; i + 7 <= numbers.size(); i += 7)
        rows.push_back({int(numbers[i]), static_cast<SegmentKind>(int(numbers[i + 1])), int(numbers[i + 2]), int(numbers[i + 3]),
                        static_cast<TimeKind>(int(numbers[i + 4])), numbers[i + 5], numbers[i + 6]});
    }
    if (rank_ == 0) publish_text(settings_.trace, chrome_trace(rows, training_, graph_));
  }

  int loop() {
    flops_ = plan_.micro_batches * (graph_flops(graph_, Phase::forward) + graph_flops(graph_, Phase::backward)) + graph_flops(graph_, Phase::update);
    const std::int64_t traced = std::min(step_ + 3, total_steps_);
    double told = now_s();
    saved_step_ = step_;
    while (step_ < total_steps_) {
      const bool trace = !settings_.trace.empty() && step_ + 1 == traced;
      if (trace) executor_->keep_timeline(true);
      StepMetrics m = train_step();
      if (trace) {
        write_trace();
        executor_->keep_timeline(false);
      }
      if (settings_.evaluate_every > 0 && step_ % settings_.evaluate_every == 0) m.evaluation_loss = evaluate();
      const StopReason reason = agreed_reason();
      const bool due = settings_.checkpoint_every > 0 && step_ % settings_.checkpoint_every == 0;
      const bool save_now = due || reason != StopReason::none || step_ == total_steps_;
      if (metrics_) metrics_->add(m);
      if (save_now) save();
      const double now = now_s();
      if (now - told >= settings_.progress_s || step_ == total_steps_ || ends_run(reason)) {
        log_.info(progress_line(m, total_steps_, static_cast<double>(total_steps_ - step_) * median_step_s()));
        told = now;
      }
      if (ends_run(reason) && step_ < total_steps_) {
        report_prediction();
        log_.info(fmt::format("stopped after step {} because of {}; the same command goes on from there", step_, stop_reason_text(reason)));
        return static_cast<int>(ErrorKind::stopped_early);
      }
    }
    report_prediction();
    log_.info(fmt::format("done: {} steps", step_));
    return 0;
  }

  const Plan& plan_;
  const Graph& graph_;
  const TrainingOptions& options_;
  const TrainSettings& settings_;
  const TrainRanks& ranks_;
  const Provenance& provenance_;
  Log& log_;
  int rank_;
  std::int64_t total_steps_;
  Program training_, evaluation_;
  std::unique_ptr<TokenSource> source_;
  BatchReader reader_;
  std::unique_ptr<Stream> control_stream_;
  StopConditions conditions_;
  std::unique_ptr<Executor> executor_;
  std::optional<MetricsFile> metrics_;
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<double> step_times_;
  std::int64_t step_ = 0, saved_step_ = 0, next_look_ = 0;
  double checkpoint_s_ = 1, flops_ = 0;
};

}  // namespace

int train(const Plan& plan, const Graph& graph, const TrainingOptions& options, const TrainSettings& settings, const TrainRanks& ranks,
          const StopRequest& stop, const Provenance& provenance, Log& log) {
  if (plan.devices() != ranks.control.size())
    throw Error(ErrorKind::allocation, fmt::format("the plan is for {} ranks, this job has {}", plan.devices(), ranks.control.size()),
                fmt::format("srun --ntasks {} (or mpiexec -n {}), or plan again with --devices {}", plan.devices(), plan.devices(), ranks.control.size()));
  return Run(plan, graph, options, settings, ranks, stop, provenance, log).run();
}

}  // namespace alpa
