#include "libalpa/program/lower.h"

#include <algorithm>
#include <map>

#include "libalpa/program/memory.h"
#include "libalpa/program/message_slots.h"
#include "libalpa/program/stage_lowering.h"

namespace alpa {
namespace {

/// The runs of each stage, without the update.
std::vector<std::vector<StageRun>> orders_of(const Plan& plan, Purpose purpose) {
  const int stages = static_cast<int>(plan.stages.size());
  std::vector<std::vector<StageRun>> orders(plan.stages.size());
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<StageRun>& order = orders[static_cast<std::size_t>(stage)];
    if (purpose == Purpose::train)
      order = find_schedule(plan.schedule).order(stage, stages, plan.micro_batches);
    else
      for (int m = 0; m < plan.micro_batches; ++m) order.push_back({SegmentKind::forward, m});
  }
  return orders;
}

/// [transfer] messages that may be on their way at once.
std::vector<std::int64_t> slots_of_messages(const Graph& graph, const Plan& plan, Purpose purpose,
                                            const std::vector<std::vector<StageRun>>& orders) {
  std::vector<Way> ways;
  std::vector<std::size_t> transfers;
  for (std::size_t t = 0; t < plan.crossings.size(); ++t) {
    const Crossing& crossing = plan.crossings[t];
    const Value& value = value_of(graph, crossing.value);
    if (value.producer < 0) continue;  // states cross once a step, as sums of gradients do
    const Node& maker = node_of(graph, value.producer);
    if (maker.op->sums_micro_batches || maker.phase == Phase::update) continue;
    const bool backward = maker.phase == Phase::backward;
    if (backward && purpose != Purpose::train) continue;
    ways.push_back({stage_of_value(plan, graph, crossing.value), crossing.to_stage, backward});
    transfers.push_back(t);
  }
  const std::vector<std::int64_t> least = message_slots(orders, ways);
  std::vector<std::int64_t> slots(plan.crossings.size(), 1);
  for (std::size_t w = 0; w < ways.size(); ++w) slots[transfers[w]] = least[w];
  return slots;
}

/// Each buffer that passes from segment to segment has a slot for every micro-batch in between.
void set_slots(MeshProgram& mesh) {
  const std::vector<int> turns = turns_of_segments(mesh);
  struct Use {
    int first = -1, last = -1;  ///< segments, in the order of a micro-batch
  };
  std::vector<Use> uses(mesh.buffers.size());
  const auto turn_of = [&](int segment) { return turns[static_cast<std::size_t>(segment)]; };
  for (int s = 0; s < static_cast<int>(mesh.segments.size()); ++s) {
    if (turn_of(s) < 0) continue;
    for (const Instruction& instruction : mesh.segments[static_cast<std::size_t>(s)].instructions)
      for (const int b : buffers_touched(instruction)) {
        Use& use = uses[static_cast<std::size_t>(b)];
        if (use.first < 0 || turn_of(s) < turn_of(use.first)) use.first = s;
        if (use.last < 0 || turn_of(s) > turn_of(use.last)) use.last = s;
      }
  }
  const auto in_flight = [&](const Use& use) {
    std::int64_t flying = 0, most = 1;
    for (const SegmentRun& run : mesh.schedule) {
      if (run.segment == use.first) most = std::max(most, ++flying);
      if (run.segment == use.last) --flying;
    }
    return most;
  };
  std::map<std::pair<int, int>, std::int64_t> slots;  // between two segments
  for (std::size_t b = 0; b < mesh.buffers.size(); ++b) {
    if (mesh.buffers[b].residence != Residence::micro_batch || uses[b].first < 0) continue;
    const auto [found, fresh] = slots.insert({{uses[b].first, uses[b].last}, 0});
    if (fresh) found->second = in_flight(uses[b]);
    mesh.buffers[b].slots = found->second;
  }
}

MeshProgram lower_stage(const Graph& graph, const Plan& plan, int stage, Purpose purpose,
                        const std::string& device, const std::vector<StageRun>& order,
                        const std::vector<std::int64_t>& message_slots) {
  MeshProgram program = StageLowering(graph, plan, stage, purpose, device, order, message_slots).run();
  const auto run = [&](SegmentKind kind, int micro_batch) {
    const auto found = std::ranges::find(program.segments, kind, &Segment::kind);
    program.schedule.push_back({static_cast<int>(found - program.segments.begin()), micro_batch});
  };
  for (const StageRun& each : order) run(each.kind, each.micro_batch);
  run(SegmentKind::update, -1);
  set_slots(program);
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
  const std::vector<std::vector<StageRun>> orders = orders_of(plan, purpose);
  const std::vector<std::int64_t> message_slots = slots_of_messages(graph, plan, purpose, orders);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage)
    program.meshes.push_back(
        lower_stage(graph, plan, static_cast<int>(stage), purpose, device, orders[stage], message_slots));
  return program;
}

}  // namespace alpa
