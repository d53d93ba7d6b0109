#include "libalpa/program/receivers.h"

#include <algorithm>
#include <set>
#include <variant>

#include "libalpa/program/state_tiles.h"

namespace alpa {
namespace {

/// Axes round which tensors go.
std::set<int> shifted_axes(const MeshProgram& mesh) {
  std::set<int> axes;
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* const shift = std::get_if<Shift>(&instruction.body)) axes.insert(shift->axis);
  return axes;
}

}  // namespace

std::vector<int> receivers_of(std::span<const Program* const> programs, DeviceIndex device, int channel) {
  std::set<int> receivers;
  for (const Program* program : programs) {
    for (const StageTransfer& transfer : program->transfers) {
      if (transfer.channel != channel) continue;
      for (const TransferMessage& message : transfer.route.messages)
        if (message.from == static_cast<int>(device)) receivers.insert(message.to);
    }
    const ProgramPlace place = place_of(*program, device);
    if (channel != 0 || place.mesh < 0) continue;
    const MeshProgram& mesh = program->meshes[place.mesh];
    for (const int axis : shifted_axes(mesh)) {
      const std::vector<DeviceIndex> ring = group_of(mesh.mesh, {axis}, device);
      const auto own = std::ranges::find(ring, device);
      const auto next = own + 1 == ring.end() ? ring.begin() : own + 1;
      receivers.insert(static_cast<int>(*next));
    }
  }
  receivers.erase(static_cast<int>(device));
  return {receivers.begin(), receivers.end()};
}

}  // namespace alpa
