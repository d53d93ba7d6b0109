#include "libalpa/planner/predict.h"

#include <algorithm>

#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/step_error.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

void put(Plan& plan, const Program& program, const Timeline& timeline, const CostModel& costs) {
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.transfers = transfer_predictions(program, costs);
  plan.prediction.meshes = mesh_predictions(program, timeline);
}

/// Micro-batches after which a pipeline works steadily: every stage has begun and ended one, with as many in
/// flight as the first has ever. What stages do for each other repeats after so many. (Where stages share
/// meshes, micro-batches may go through them in groups: one for each mesh, the last of what is left.)
struct SteadyState {
  int begun = 0, repeats = 0;
  int steady() const { return begun + repeats; }
};

SteadyState steady_state(const Plan& plan) {
  const int stages = static_cast<int>(plan.stages.size()), meshes = static_cast<int>(plan.meshes.size());
  const int group = stages > meshes ? meshes : 1;
  const auto whole_groups = [&](int count) { return (count + group - 1) / group * group; };
  const int repeats = whole_groups(std::ranges::max(
      held_by_stages(find_schedule(plan.schedule), mesh_of_each_stage(plan), plan.micro_batches)));
  return {whole_groups(repeats + 2 * stages) + plan.micro_batches % group, repeats};
}

/// `later` and so many times more what lies between. Where idle time still falls from one to the other, what
/// is extended so would be less than the work of a mesh: the step takes that at least.
Timeline extended(const Timeline& earlier, Timeline later, double times) {
  const auto extend = [&](double from, double& to) {
    to = std::max(0.0, to + times * (to - from));  // a rounding may leave less than nothing
  };
  extend(earlier.step_s, later.step_s);
  for (const MeshIndex m : later.meshes.indices()) {
    const MeshTime& from = earlier.meshes[m];
    MeshTime& to = later.meshes[m];
    extend(from.compute_s, to.compute_s);
    extend(from.collective_s, to.collective_s);
    extend(from.transfer_s, to.transfer_s);
    later.step_s = std::max(later.step_s, to.compute_s + to.collective_s + to.transfer_s);
    extend(earlier.hidden[m].collective_s, later.hidden[m].collective_s);
    extend(earlier.hidden[m].transfer_s, later.hidden[m].transfer_s);
  }
  for (MeshTime& mesh : later.meshes)
    mesh.idle_s = later.step_s - (mesh.compute_s + mesh.collective_s + mesh.transfer_s);
  return later;
}

}  // namespace

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  Program program = lower(graph, plan);
  put(plan, program, simulate(program, costs), costs);
  if (const int steady = steady_state(plan).steady(); steady < plan.micro_batches)
    set_micro_batches(program, plan, steady);  // the others are like the last of these
  verify(program);
  plan.prediction.estimated_operators = static_cast<int>(costs.missing().size());
}

int micro_batches_to_be_steady(const Plan& plan) {
  return std::min(plan.micro_batches, std::max(8, 4 * static_cast<int>(plan.stages.size())));
}

Sureness sureness(const Plan& plan, const Graph& graph, const CostModel& costs, double step_s) {
  if (!costs.is_measured()) return {};
  Plan fewer = plan;
  fewer.micro_batches = micro_batches_to_be_steady(plan);
  const Program program = lower(graph, fewer);
  const Timeline timeline = simulate(program, costs, true);
  const double error_s =
      timeline.step_s > 0 ? step_s * step_error_s(program, timeline, costs) / timeline.step_s : 0;
  return {error_s, estimated_share(program, timeline, costs)};
}

void predict_sureness(Plan& plan, const Graph& graph, const CostModel& costs) {
  Prediction& prediction = plan.prediction;
  const Sureness sure = sureness(plan, graph, costs, prediction.step_s);
  prediction.step_error_s = sure.error_s;
  prediction.estimated_share = sure.estimated_share;
}

void predict_steady(Plan& plan, const Graph& graph, const CostModel& costs) {
  const SteadyState state = steady_state(plan);
  const int all = plan.micro_batches;
  const bool is_long = all > state.steady() + state.repeats;
  Plan fewer = plan;
  if (is_long) fewer.micro_batches = state.steady();
  Program program = lower(graph, fewer);
  Timeline timeline = simulate(program, costs);
  if (is_long) {
    set_micro_batches(program, plan, state.begun);
    timeline = extended(simulate(program, costs), std::move(timeline),
                        static_cast<double>(all - state.steady()) / state.repeats);
  }
  put(plan, program, timeline, costs);
}

}  // namespace alpa
