#include "libalpa/program/lower.h"

#include <algorithm>

#include "libalpa/program/memory.h"
#include "libalpa/program/schedule.h"
#include "libalpa/program/stage_lowering.h"

namespace alpa {
namespace {

StageProgram lower_stage(const Graph& graph, const Plan& plan, int stage, Purpose purpose,
                         const std::string& device) {
  StageProgram program = StageLowering(graph, plan, stage, purpose, device).run();
  if (purpose == Purpose::train) {
    program.schedule =
        schedule_of(plan.schedule, stage, static_cast<int>(plan.stages.size()), plan.micro_batches);
    program.slots = most_in_flight(program.schedule);
  } else {
    for (int m = 0; m < plan.micro_batches; ++m) program.schedule.push_back({SegmentKind::forward, m});
  }
  program.schedule.push_back({SegmentKind::update, -1});
  lay_out(program, graph);
  return program;
}

}  // namespace

Program lower(const Graph& graph, const Plan& plan, Purpose purpose) {
  return lower(graph, plan, purpose, plan.cluster.device);
}

Program lower(const Graph& graph, const Plan& plan, Purpose purpose, const std::string& device) {
  Program program;
  program.micro_batches = plan.micro_batches;
  program.micro_batch_samples = plan.micro_batch_samples;
  program.devices_per_node = plan.cluster.devices_per_node;
  for (const Crossing& crossing : plan.crossings) {
    const int from = stage_of_value(plan, graph, crossing.value);
    program.transfers.push_back({value_of(graph, crossing.value).type,
                                 plan.stages[static_cast<std::size_t>(from)].mesh,
                                 plan.stages[static_cast<std::size_t>(crossing.to_stage)].mesh,
                                 leaving_layout(plan, crossing.value), crossing.layout});
    program.transfer_value.push_back(crossing.value);
  }
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage)
    program.stages.push_back(lower_stage(graph, plan, stage, purpose, device));
  return program;
}

}  // namespace alpa
