#include "libalpa/program/order/slowed_computation.h"

#include <algorithm>

namespace alpa {

SlowedComputation::SlowedComputation(const Program& program, const CostModel& costs, Overlap overlap)
    : program_(program), overlap_(overlap) {
  if (overlap == Overlap::none) return;
  const auto slowdown_of = [&](const MeshProgram& mesh) {
    return costs.on(mesh.mesh).cluster().overlap_slowdown;
  };
  if (std::ranges::all_of(program.meshes, [&](const MeshProgram& mesh) { return slowdown_of(mesh) == 1; }))
    return;
  sender_of_.resize(program.transfers.size());
  for (const MeshIndex m : program.meshes.indices()) {
    meshes_.push_back({slowdown_of(program.meshes[m])});
    for (const Segment& segment : program.meshes[m].segments)
      for (const Instruction& instruction : segment.instructions)
        if (const auto* send = std::get_if<Send>(&instruction.body)) sender_of_[send->transfer] = m;
  }
}

bool SlowedComputation::takes(MeshIndex m, const Instruction& instruction) const {
  return !meshes_.empty() && meshes_[m].slowdown > 1 &&
         program_.meshes[m].lanes[instruction.lane].kind == LaneKind::compute;
}

double SlowedComputation::end_of(const Mesh& mesh) const {
  const double left_s = mesh.computation->left_s, slowed_s = left_s * mesh.slowdown;
  if (!mesh.is_slow()) return mesh.now_s + left_s;
  if (mesh.communications > 0 || mesh.now_s + slowed_s <= mesh.busy_until_s) return mesh.now_s + slowed_s;
  return mesh.busy_until_s + (left_s - (mesh.busy_until_s - mesh.now_s) / mesh.slowdown);
}

template <class Change>
void SlowedComputation::change(MeshIndex m, double at_s, const Change& change) {
  Mesh& mesh = meshes_[m];
  at_s = std::max(at_s, mesh.now_s);  // but for rounding it is
  if (mesh.computation) {
    ends_.erase({mesh.computed_s, m});
    const double slow_until_s =
        mesh.communications > 0 ? at_s : std::clamp(mesh.busy_until_s, mesh.now_s, at_s);
    mesh.computation->left_s -= (slow_until_s - mesh.now_s) / mesh.slowdown + (at_s - slow_until_s);
    mesh.computation->left_s = std::max(mesh.computation->left_s, 0.0);
  }
  mesh.now_s = at_s;
  change(mesh);
  if (mesh.computation) ends_.insert({mesh.computed_s = end_of(mesh), m});
}

void SlowedComputation::begin(const UnderWay& computation) {
  change(computation.turn.what.mesh, computation.start_s,
         [&](Mesh& mesh) { mesh.computation = computation; });
}

UnderWay SlowedComputation::take_next() {
  const auto [end_s, m] = *ends_.begin();
  const UnderWay ended = *meshes_[m].computation;
  change(m, end_s, [](Mesh& mesh) { mesh.computation.reset(); });
  return ended;
}

template <class Change>
void SlowedComputation::change_all(MeshIndex m, const Instruction& instruction, double at_s,
                                   const Change& each) {
  if (meshes_.empty()) return;
  const LaneKind lane = program_.meshes[m].lanes[instruction.lane].kind;
  // What is loaded or moved takes no network. (The first is small; of the second nothing was measured.)
  if (is_in_turn(lane, overlap_) || lane == LaneKind::copy || lane == LaneKind::fetch ||
      lane == LaneKind::offload)
    return;
  change(m, at_s, each);
  if (const auto* receive = std::get_if<Receive>(&instruction.body))
    change(sender_of_[receive->transfer], at_s, each);
}

void SlowedComputation::communicate(MeshIndex m, const Instruction& instruction, double start_s,
                                    double end_s) {
  change_all(m, instruction, start_s,
             [&](Mesh& mesh) { mesh.busy_until_s = std::max(mesh.busy_until_s, end_s); });
}

void SlowedComputation::begin_communication(MeshIndex m, const Instruction& instruction, double start_s) {
  change_all(m, instruction, start_s, [](Mesh& mesh) { ++mesh.communications; });
}

void SlowedComputation::end_communication(MeshIndex m, const Instruction& instruction, double end_s) {
  change_all(m, instruction, end_s, [](Mesh& mesh) { --mesh.communications; });
}

}  // namespace alpa
