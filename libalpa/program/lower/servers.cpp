#include "libalpa/program/lower/servers.h"

#include <algorithm>

#include "libalpa/program/lower/lane_for.h"

namespace alpa {
namespace {

void mark_served(MeshProgram& mesh, int devices_per_node, const Cluster& cluster) {
  for (Segment& segment : mesh.segments)
    for (Instruction& instruction : segment.instructions) {
      auto* const convert = std::get_if<Convert>(&instruction.body);
      if (!convert || convert->step.kind != ConversionKind::all_reduce) continue;
      const double bytes =
          step_bytes(convert->step, mesh.buffers[convert->from].tile, mesh.buffers[convert->to].tile);
      convert->is_served =
          cluster.serves(group_shape(mesh.mesh, convert->step.axis, devices_per_node), bytes);
    }
}

/// The sums over all ranks, to which servers add nothing, and their parts of those that they serve, when the
/// mesh makes them.
class ServerProgram {
 public:
  ServerProgram(const MeshProgram& of, const Cluster& cluster, const std::vector<StageTransfer>& transfers)
      : of_(of), transfers_(transfers) {
    const int servers = cluster.server_devices();
    program_.mesh = {DeviceIndex(cluster.devices()), servers > 1 ? MeshShape{servers} : MeshShape{}};
    copy_scalars();
    for (const Segment& segment : of.segments) {
      program_.segments.push_back({segment.stage, segment.kind, {}});
      for (const Instruction& instruction : segment.instructions) {
        if (const auto* sum = std::get_if<GlobalSum>(&instruction.body)) add_nothing_to(*sum, instruction);
        if (const std::optional<Serve> serve = served_by(of, instruction)) emit(*serve, instruction.when);
      }
    }
    program_.schedule = of.schedule;
    program_.state_buffer = Indexed<StateIndex, BufferIndex>(of.state_buffer.size());
    program_.state_parts = Indexed<StateIndex, std::vector<BufferIndex>>(of.state_parts.size());
  }

  MeshProgram take() { return std::move(program_); }

 private:
  /// The buffer of all sums, at the beginning of the arena, and its views.
  void copy_scalars() {
    const BufferIndex whole = of_.whole(of_.loss);
    copies_.emplace_back(whole, copy(whole));
    Buffer& packed = program_.buffers.back();
    packed.offset = 0;
    packed.slots_in = {};
    for (const BufferIndex b : of_.buffers.indices())
      if (of_.buffers[b].view_of == whole) {
        copies_.emplace_back(b, copy(b));
        program_.buffers.back().view_of = of_here(whole);
        program_.buffers.back().offset = of_.buffers[b].view_offset;
      }
    program_.memory.total = program_.buffers[of_here(whole)].bytes;
    program_.loss = of_here(of_.loss);
    program_.gradient_square_sum = of_here(of_.gradient_square_sum);
    for (const BufferIndex metric : of_.metrics) program_.metrics.push_back(of_here(metric));
  }

  BufferIndex copy(BufferIndex b) {
    program_.buffers.push_back(of_.buffers[b]);
    return BufferIndex(program_.buffers.size() - 1);
  }

  BufferIndex of_here(BufferIndex b) const {
    const auto found = std::ranges::find(copies_, b, &std::pair<BufferIndex, BufferIndex>::first);
    return found == copies_.end() ? BufferIndex() : found->second;
  }

  void add_nothing_to(const GlobalSum& sum, const Instruction& instruction) {
    GlobalSum own{{}, of_here(sum.packed)};
    for (const BufferIndex scalar : sum.scalars) {
      own.scalars.push_back(of_here(scalar));
      emit(Zero{own.scalars.back()}, instruction.when);
    }
    emit(std::move(own), instruction.when);
  }

  void emit(InstructionBody body, When when) {
    const Lane lane = lane_for(body, transfers_);
    auto at = std::ranges::find(program_.lanes, lane);
    if (at == program_.lanes.end()) at = program_.lanes.insert(at, lane);
    program_.segments.back().instructions.push_back(
        {std::move(body), static_cast<int>(at - program_.lanes.begin()), when});
  }

  const MeshProgram& of_;
  const std::vector<StageTransfer>& transfers_;
  MeshProgram program_;
  std::vector<std::pair<BufferIndex, BufferIndex>> copies_;  ///< of the mesh, and here
};

}  // namespace

void add_servers(Program& program, const Cluster& cluster) {
  if (cluster.servers == 0) return;
  for (MeshProgram& mesh : program.meshes) mark_served(mesh, program.devices_per_node, cluster);
  program.servers = ServerProgram(program.meshes[MeshIndex(0)], cluster, program.transfers).take();
}

}  // namespace alpa
