#include "libalpa/planner/predict.h"

#include <algorithm>

#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"

namespace alpa {

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  verify(program);
  const Timeline timeline = simulate(program, costs);
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.meshes.clear();
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    std::int64_t in_flight = 1;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.residence == Residence::micro_batch) in_flight = std::max(in_flight, buffer.slots);
    plan.prediction.meshes.push_back({timeline.meshes[m], mesh.memory, in_flight});
  }
  plan.prediction.estimated_operators = static_cast<int>(costs.missing().size());
}

}  // namespace alpa
