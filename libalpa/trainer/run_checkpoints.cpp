#include "libalpa/trainer/run_checkpoints.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/first_rank.h"
#include "libalpa/checkpoint/run_folder.h"

namespace alpa {

std::filesystem::path agreed_resume_point(const TrainSettings& settings, const TrainRanks& ranks,
                                          Stream& control, Log& log) {
  return in_step("looking for the checkpoint to go on from", [&] {
    return text_of_first_rank(ranks.files, control, [&](const BytesRead& read) {
      const auto found = find_resume_point(settings.resume, settings.run_dir, log, read);
      return found ? found->path.string() : std::string();
    });
  });
}

/// Counts the time of a call.
class RunCheckpoints::StandStill {
 public:
  explicit StandStill(RunCheckpoints& of) : of_(of) {}
  ~StandStill() { of_.stood_still_s_ = of_.stood_still_s_.value_or(0) + seconds(); }
  StandStill(const StandStill&) = delete;
  StandStill& operator=(const StandStill&) = delete;

  double seconds() const { return monotonic_s() - begin_s_; }

 private:
  RunCheckpoints& of_;
  double begin_s_ = monotonic_s();
};

RunCheckpoints::RunCheckpoints(const TrainSettings& settings, CheckpointSaving saving, const Graph& graph,
                               Executor& executor, const TrainRanks& ranks, Stream& control,
                               const Provenance& provenance, Log& log)
    : settings_(settings),
      saving_(saving),
      graph_(graph),
      executor_(executor),
      ranks_(ranks),
      control_(control),
      provenance_(provenance),
      log_(log) {}

void RunCheckpoints::save(const CheckpointFacts& facts, bool at_once) {
  publish(facts.step);
  const StandStill stands(*this);
  at_once = at_once || saving_ == CheckpointSaving::synchronous;
  in_step(saving_text(facts.step), [&] {
    step_ = facts.step;
    begun_s_ = monotonic_s();
    pending_ = state_writer(executor_, graph_, checkpoint_path(settings_.run_dir, step_), facts, provenance_,
                            WritingRanks{ranks_.files, control_});
    if (at_once) return pending_->publish();
    pending_->write_in_background();
    copied_s_ = stands.seconds();
  });
  if (at_once) finish();
}

void RunCheckpoints::publish(std::int64_t step) {
  if (!pending_) return;
  const StandStill stands(*this);
  const std::string removed = text_of_first_rank(
      ranks_.files, control_, [&] { return std::string(pending_->is_in_place() ? "" : "removed"); });
  if (!removed.empty()) {
    if (ranks_.control.rank() == 0)
      log_.warning(fmt::format("the checkpoint of step {} was removed while it was written", step_));
    return pending_.reset();
  }
  in_step(saving_text(step_), [&] { pending_->publish(); });
  finish();
  constexpr double long_s = 1;
  const std::string waited =
      stands.seconds() < long_s
          ? ""
          : fmt::format(", for the last {} of which training waited", seconds_text(stands.seconds()));
  log_.info(fmt::format("the checkpoint of step {} was saved by step {}: {}{}", step_, step, saved_.text(),
                        waited));
}

void RunCheckpoints::finish() {
  pending_.reset();
  saved_ = {step_, 0, monotonic_s() - begun_s_};
  on_first_rank(ranks_.files, control_, [&] {
    std::error_code removed;
    const auto bytes = std::filesystem::file_size(checkpoint_path(settings_.run_dir, step_), removed);
    if (!removed) saved_.bytes = static_cast<std::int64_t>(bytes);
    keep_last(settings_.run_dir, step_, settings_.keep, log_);
  });
  unreported_ = saved_;
}

double RunCheckpoints::save_s() const {
  return pending_ ? std::max(saved_.seconds, monotonic_s() - begun_s_) : saved_.seconds;
}

std::string RunCheckpoints::saved_text() const {
  return pending_ ? fmt::format("  copied in {}", seconds_text(copied_s_)) : "  saved " + saved_.text();
}

void RunCheckpoints::report(StepMetrics& m) {
  m.checkpoint_s = std::exchange(stood_still_s_, std::nullopt);
  m.saved = std::exchange(unreported_, std::nullopt);
}

}  // namespace alpa
