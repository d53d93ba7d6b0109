// What a stage sends to others and receives of them.
#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/program/stage_lowering.h"

namespace alpa {
namespace {

bool is_state(const Graph& graph, int value) { return value_of(graph, value).kind == ValueKind::state; }

int state_with_value(const Graph& graph, int value) {
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    if (graph.states[s].value == value) return static_cast<int>(s);
  return -1;
}

}  // namespace

/// Values that another stage makes in `phase`, in the order it makes them: the backward goes through the last
/// layer first, whatever the order of the graph's nodes is. (Sums of gradients cross in the update.)
void StageLowering::receive_values_made_in(Phase phase) {
  std::vector<std::tuple<int, int, int>> arriving;
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    const Crossing& crossing = plan_.crossings[t];
    if (crossing.to_stage != stage_ || is_state(graph_, crossing.value)) continue;
    const Node& maker = node_of(graph_, value_of(graph_, crossing.value).producer);
    const Phase made = maker.op->sums_micro_batches ? Phase::update : maker.phase;
    if (made == phase)
      arriving.push_back({phase == Phase::backward ? -maker.layer : 0,
                          value_of(graph_, crossing.value).producer, static_cast<int>(t)});
  }
  std::sort(arriving.begin(), arriving.end());
  for (const auto& [layer, producer, t] : arriving) {
    const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(t)];
    const int buffer = values_.resting_buffer(crossing.value, value_of(graph_, crossing.value).type.dtype);
    values_.emit(Receive{t, buffer, values_.scratch("arriving pieces", values_.buffer(buffer).bytes)});
    values_.provide(crossing.value, crossing.layout, buffer);
  }
}

void StageLowering::send_if_crossing(int value) {
  if (stage_of_value(plan_, graph_, value) != stage_) return;
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    if (plan_.crossings[t].value != value) continue;
    send(static_cast<int>(t), values_.obtain(value, leaving_layout(plan_, value)));
  }
}

/// A state used by several stages is updated at home and copied to the others.
void StageLowering::send_state_copies() {
  for (std::size_t t = 0; t < plan_.crossings.size(); ++t) {
    const Crossing& crossing = plan_.crossings[t];
    if (!is_state(graph_, crossing.value)) continue;
    const int buffer =
        values_.program().state_buffer[static_cast<std::size_t>(state_with_value(graph_, crossing.value))];
    if (stage_of_value(plan_, graph_, crossing.value) == stage_) send(static_cast<int>(t), buffer);
    if (crossing.to_stage == stage_)
      values_.emit(Receive{static_cast<int>(t), buffer,
                           values_.scratch("arriving pieces", values_.buffer(buffer).bytes)});
  }
}

/// The pieces leave from memory of their own, so that the stage goes on while they are on their way.
void StageLowering::send(int transfer, int buffer) {
  const Crossing& crossing = plan_.crossings[static_cast<std::size_t>(transfer)];
  const int copies = device_count(plan_.stages[static_cast<std::size_t>(crossing.to_stage)].mesh.shape);
  const auto bytes = checked_product(values_.buffer(buffer).bytes, copies);
  if (!bytes)
    throw Error(ErrorKind::input,
                fmt::format("{} pieces of {} bytes on their way to stage {} are more than an address counts",
                            copies, values_.buffer(buffer).bytes, crossing.to_stage),
                "fewer micro-batches, or a smaller batch");
  values_.emit(
      Send{transfer, buffer, values_.leaving(*bytes, message_slots_[static_cast<std::size_t>(transfer)])});
}

}  // namespace alpa
