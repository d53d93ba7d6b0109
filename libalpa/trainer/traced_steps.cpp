#include "libalpa/trainer/traced_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/program/order/straggler.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/gather_timeline.h"
#include "libalpa/runtime/memory_there.h"

namespace alpa {
namespace {

constexpr std::int64_t kWarmUpSteps = 2;

}  // namespace

void check_trace(const TrainSettings& settings) {
  const std::filesystem::path in_run_dir = settings.run_dir / settings.trace.filename();
  const bool is_in_run_dir = settings.trace.lexically_normal() == in_run_dir.lexically_normal();
  if (settings.trace.empty() || (is_in_run_dir && !std::filesystem::exists(settings.run_dir))) return;
  AtomicFile{settings.trace};
}

TracedSteps::TracedSteps(const TrainSettings& settings, const Plan& plan, const Graph& graph,
                         const Program& program, const Provenance& provenance, TimelineKind kind,
                         std::int64_t done, std::int64_t total)
    : settings_(settings),
      plan_(plan),
      graph_(graph),
      program_(program),
      provenance_(provenance),
      kind_(kind),
      first_(done + kWarmUpSteps + 1),
      kept_(std::min(settings.timeline_steps, std::max<std::int64_t>(total - done - kWarmUpSteps, 0) / 2)) {
  if (!settings.trace.empty()) trace_ = std::min(first_, total);
}

bool TracedSteps::has(std::int64_t step) const {
  return step == trace_ || (step >= first_ && step < first_ + 2 * kept_ && (step - first_) % 2 == 0);
}

std::string TracedSteps::shortage() const {
  if (kept_ == settings_.timeline_steps) return "";
  return fmt::format(
      "the timeline is kept of {}, not {} as --timeline-steps says: it takes every second step after the "
      "first "
      "{}, and the run has no more",
      count_text(kept_, "step"), settings_.timeline_steps, kWarmUpSteps);
}

void TracedSteps::prepare() const {
  check_trace(settings_);
  if (kept_ == 0) return;
  const std::filesystem::path steps = measured_steps_path(settings_.run_dir);
  make_folder(steps.parent_path());
  AtomicFile{steps};
  std::filesystem::remove(steps);  // of an earlier run, maybe of another plan
}

TracedSteps::OfRanks TracedSteps::gather(std::int64_t step, const Executor& executor, Communicator& ranks,
                                         Stream& stream) const {
  const auto mine = static_cast<std::int64_t>(computed_s(executor.timeline()) * 1e9);
  return {gather_timeline(executor, step == trace_ ? traced_ranks(program_) : fullest_ranks(program_),
                          settings_.node_name, ranks, stream),
          gather_numbers(ranks, stream, mine)};
}

void TracedSteps::add(std::int64_t step, double step_s, OfRanks of_ranks) {
  computed_s_.resize(of_ranks.computed_ns.size());
  for (std::size_t r = 0; r < computed_s_.size(); ++r)
    computed_s_[r] += static_cast<double>(of_ranks.computed_ns[r]) / 1e9;
  ++steps_;
  if (step >= first_ && step < first_ + 2 * kept_) {
    MeasuredStep& measured = measured_.steps.emplace_back(MeasuredStep{step, step_s, 0, {}});
    const std::vector<DeviceIndex> of_meshes = fullest_ranks(program_);
    for (const RankRows& rank : of_ranks.rows)
      if (std::ranges::find(of_meshes, rank.rank) != of_meshes.end())
        measured.rows.insert(measured.rows.end(), rank.rows.begin(), rank.rows.end());
  }
  if (step != trace_) return;
  bring_together(of_ranks.rows, program_);
  publish_text(settings_.trace, chrome_trace(kind_, of_ranks.rows, program_, graph_));
}

std::string TracedSteps::slowest_text() const {
  std::vector<RankWork> work;
  for (std::size_t r = 0; r < computed_s_.size(); ++r)
    work.push_back({DeviceIndex(r), "", computed_s_[r] / steps_});
  const std::optional<Straggler> slowest = slowest_rank(work, program_);
  return slowest && kind_ == TimelineKind::measured ? straggler_text(*slowest) : "";
}

void TracedSteps::add_between(std::int64_t step, double step_s) {
  if (measured_.steps.empty()) return;
  measured_.steps.back().next_step_s = step_s;
  if (step == first_ + 2 * kept_ - 1) finish();
}

void TracedSteps::finish() {
  if (!measured_.steps.empty() && measured_.steps.back().next_step_s == 0) measured_.steps.pop_back();
  if (measured_.steps.empty()) return;
  const std::filesystem::path steps = measured_steps_path(settings_.run_dir);
  make_folder(steps.parent_path());  // which somebody may have removed under the run
  write_plan(measured_plan_path(settings_.run_dir), plan_, graph_, provenance_);
  measured_.program_fingerprint = program_fingerprint(program_, graph_);
  write_measured_steps(steps, std::exchange(measured_, {}), provenance_);
}

}  // namespace alpa
