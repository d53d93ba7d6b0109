#include "libalpa/report/step_picture.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libalpa/program/lower/lower.h"

namespace alpa {
namespace {

int drawn_micro_batches(const Plan& plan, int most_bars) {
  const int stages = static_cast<int>(plan.stages.size());
  constexpr int between = 6;  // of the steady state
  const int most = std::max(2, most_bars / (2 * stages));
  return std::min({plan.micro_batches, 2 * stages + between, most});
}

std::vector<RunBar> bars_of(MeshIndex m, const MeshProgram& mesh, const std::vector<TimelineRow>& rows) {
  std::map<std::pair<int, int>, RunBar> runs;  // by segment and micro-batch
  for (const TimelineRow& row : rows) {
    if (row.mesh != m) continue;
    const Segment& segment = mesh.segments[row.segment];
    const double end_s = row.start_s + row.duration_s;
    RunBar& bar = runs.try_emplace({row.segment, row.micro_batch},
                                   RunBar{segment.kind, segment.stage, row.micro_batch, row.start_s, end_s})
                      .first->second;
    bar.start_s = std::min(bar.start_s, row.start_s);
    bar.end_s = std::max(bar.end_s, end_s);
    (row.kind == TimeKind::compute      ? bar.compute_s
     : row.kind == TimeKind::collective ? bar.collective_s
                                        : bar.transfer_s) += row.duration_s;
  }
  std::vector<RunBar> bars;
  for (const auto& [run, bar] : runs) bars.push_back(bar);
  std::ranges::stable_sort(bars, {}, &RunBar::start_s);
  return bars;
}

/// Activations come with a forward and go with the last segment of the backward; all else stays.
std::vector<MemoryStep> memory_of(const std::vector<RunBar>& bars, const MemoryUse& use) {
  std::vector<std::pair<double, int>> changes;  // micro-batches of a stage more or fewer
  std::map<std::pair<int, int>, double> gone_s;
  for (const RunBar& bar : bars) {
    if (bar.kind == SegmentKind::forward) changes.emplace_back(bar.start_s, 1);
    if (bar.kind == SegmentKind::forward || bar.kind == SegmentKind::update) continue;
    double& at_s = gone_s[{bar.stage, bar.micro_batch}];
    at_s = std::max(at_s, bar.end_s);
  }
  for (const auto& [of, at_s] : gone_s) changes.emplace_back(at_s, -1);
  std::ranges::sort(changes);
  int held = 0, most_held = 1;
  for (const auto& [at_s, change] : changes) most_held = std::max(most_held, held += change);
  const std::int64_t stays = use.total - use.activations;
  std::vector<MemoryStep> steps{{0, stays}};
  held = 0;
  for (const auto& [at_s, change] : changes) {
    held += change;
    const std::int64_t bytes = stays + use.activations * held / most_held;
    if (steps.back().at_s == at_s)
      steps.back().bytes = bytes;
    else
      steps.push_back({at_s, bytes});
  }
  return steps;
}

}  // namespace

StepPicture step_picture(const Plan& plan, const Graph& graph, const CostModel& costs, int most_bars) {
  Plan drawn = plan;
  drawn.micro_batches = drawn_micro_batches(plan, most_bars);
  const Program program = lower(graph, drawn);
  const Timeline timeline = simulate(program, costs, true);
  StepPicture picture{drawn.micro_batches, timeline.step_s, {}};
  const Indexed<MeshIndex, std::vector<StageIndex>> stages = stages_of_meshes(plan);
  for (const TimelineRow& row : timeline.rows)  // what goes on beside the next step ends later
    picture.step_s = std::max(picture.step_s, row.start_s + row.duration_s);
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    const std::vector<RunBar> bars = bars_of(m, mesh, timeline.rows);
    picture.meshes.push_back({stages[m], bars, memory_of(bars, mesh.memory)});
  }
  return picture;
}

}  // namespace alpa
