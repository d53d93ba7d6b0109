#include "libalpa/planner/predict.h"

#include <algorithm>

#include "libalpa/program/lower.h"
#include "libalpa/program/simulate.h"
#include "libalpa/program/verify.h"

namespace alpa {

void predict(Plan& plan, const Graph& graph, const CostModel& costs) {
  const Program program = lower(graph, plan);
  verify(program);
  const Timeline timeline = simulate(program, costs);
  plan.prediction.step_s = timeline.step_s;
  plan.prediction.stages.clear();
  for (std::size_t s = 0; s < program.meshes.size(); ++s) {
    const MeshProgram& mesh = program.meshes[s];
    std::int64_t in_flight = 1;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.residence == Residence::micro_batch) in_flight = std::max(in_flight, buffer.slots);
    plan.prediction.stages.push_back({timeline.meshes[s], mesh.memory, in_flight});
  }
  plan.prediction.estimated_operators = static_cast<int>(costs.missing().size());
}

}  // namespace alpa
