#include "libalpa/planner/predict.h"

#include <algorithm>

#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/step_error.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

void put(Plan& plan, const Program& program, const Timeline& timeline) {
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.meshes = mesh_predictions(program, timeline);
}

Timeline of_fewer(Plan plan, int micro_batches, const Graph& graph, const CostModel& costs) {
  plan.micro_batches = micro_batches;
  return simulate(lower(graph, plan), costs);
}

/// `later` and so many times more what lies between. Where idle time still falls from one to the other, what
/// is extended so would be less than the work of a mesh: the step takes that at least.
Timeline extended(const Timeline& earlier, Timeline later, double times) {
  const auto extend = [&](double from, double& to) { to += times * (to - from); };
  extend(earlier.step_s, later.step_s);
  for (const MeshIndex m : later.meshes.indices()) {
    const MeshTime& from = earlier.meshes[m];
    MeshTime& to = later.meshes[m];
    extend(from.compute_s, to.compute_s);
    extend(from.collective_s, to.collective_s);
    extend(from.transfer_s, to.transfer_s);
    later.step_s = std::max(later.step_s, to.compute_s + to.collective_s + to.transfer_s);
  }
  for (MeshTime& mesh : later.meshes)
    mesh.idle_s = later.step_s - (mesh.compute_s + mesh.collective_s + mesh.transfer_s);
  return later;
}

}  // namespace

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  verify(program);
  put(plan, program, simulate(program, costs));
  plan.prediction.estimated_operators = static_cast<int>(costs.missing().size());
}

double predicted_error_s(const Plan& plan, const Graph& graph, const CostModel& costs, double step_s) {
  if (!costs.is_measured()) return 0;
  Plan fewer = plan;
  const int enough = std::max(8, 4 * static_cast<int>(plan.stages.size()));  // to be steady for a while
  fewer.micro_batches = std::min(plan.micro_batches, enough);
  const Program program = lower(graph, fewer);
  const Timeline timeline = simulate(program, costs, Lanes::joined, true);
  return timeline.step_s > 0 ? step_s * step_error_s(program, timeline, costs) / timeline.step_s : 0;
}

void predict_steady(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  const int stages = static_cast<int>(plan.stages.size()), all = plan.micro_batches;
  const std::vector<StageRun> first = find_schedule(plan.schedule).order(StageIndex(0), stages, all);
  // Every stage has begun and ended one by then, with as many in flight as the first has ever; what stages do
  // for each other repeats after so many.
  const int repeats = most_in_flight(first), begun = repeats + 2 * stages;
  if (all <= begun + 2 * repeats) return put(plan, program, simulate(program, costs));
  const int steady = begun + repeats;
  put(plan, program,
      extended(of_fewer(plan, begun, graph, costs), of_fewer(plan, steady, graph, costs),
               static_cast<double>(all - steady) / repeats));
}

}  // namespace alpa
