// What a mesh sends to others and receives of them.
#include <algorithm>
#include <tuple>

#include "libalpa/program/lower/mesh_lowering.h"

namespace alpa {
namespace {

bool is_state(const Graph& graph, ValueIndex value) {
  return value_of(graph, value).kind == ValueKind::state;
}

}  // namespace

/// Values that a stage of another mesh makes in `phase` and the stage at hand is the first here to need, in
/// the order they are made: the backward goes through the last layer first, whatever the order of the graph's
/// nodes is. (Sums of gradients cross in the update.)
void MeshLowering::receive_values_made_in(Phase phase) {
  std::vector<std::tuple<int, int, int>> received;
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    const StageTransfer& transfer = transfers_[t];
    if (plan_.transfers[t].to_mesh != mesh_ || is_state(graph_, transfer.value)) continue;
    if (phase != Phase::update && transfer.to_stage != values_.stage()) continue;
    const Node& maker = node_of(graph_, value_of(graph_, transfer.value).producer);
    if (phase_of_transfer(graph_, transfer.value) == phase)
      received.push_back({phase == Phase::backward ? -maker.layer : 0,
                          value_of(graph_, transfer.value).producer, static_cast<int>(t)});
  }
  std::sort(received.begin(), received.end());
  for (const auto& [layer, producer, t] : received) {
    const StageTransfer& transfer = transfers_[t];
    const BufferIndex buffer =
        values_.resting_buffer(transfer.value, value_of(graph_, transfer.value).type.dtype);
    receive(t, buffer, plan_.overlap != Overlap::none && phase != Phase::update);
    values_.provide_resting(transfer.value, buffer);
  }
}

void MeshLowering::send_to_other_meshes(ValueIndex value) {
  if (placement_.mesh_of_value(value) != mesh_) return;
  for (std::size_t t = 0; t < transfers_.size(); ++t)
    if (transfers_[t].value == value)
      send(static_cast<int>(t), values_.fetch_leaving(value, transfers_[t].from));
}

/// A state used on several meshes is updated at home and copied to the others.
void MeshLowering::send_state_copies() {
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    const ValueIndex value = transfers_[t].value;
    if (!is_state(graph_, value)) continue;
    const BufferIndex buffer = values_.program().state_buffer[uses_.state_at[value]];
    if (placement_.mesh_of_value(value) == mesh_) send(static_cast<int>(t), buffer);
    if (plan_.transfers[t].to_mesh == mesh_) receive(static_cast<int>(t), buffer, false);
  }
}

/// The pieces arrive in memory of their own: early, where the mesh computes meanwhile.
void MeshLowering::receive(int transfer, BufferIndex buffer, bool early) {
  const std::int64_t bytes = values_.buffer(buffer).bytes;
  const BufferIndex packed =
      early ? values_.message_memory("received pieces", bytes, 1) : values_.scratch("received pieces", bytes);
  values_.emit(Receive{transfer, packed});
  values_.emit(Unpack{transfer, packed, buffer});
}

/// The pieces leave from memory of their own, so that the mesh goes on while they are on their way. They are
/// boxes of the tile that do not overlap, those that the device sends: what several others need is there
/// once. A second pass over a step begins when all that the first has sent has left.
void MeshLowering::send(int transfer, BufferIndex buffer) {
  const auto [packed, is_first] = sent_pieces_.try_emplace(transfer);
  if (is_first) {
    const StageTransfer& way = transfers_[transfer];
    const std::int64_t bytes = most_packed_elements(way.route) * dtype_bytes(way.whole.dtype);
    packed->second = values_.message_memory("sent pieces", bytes, message_slots_[transfer]);
  }
  values_.emit(Send{transfer, buffer, packed->second});
}

}  // namespace alpa
