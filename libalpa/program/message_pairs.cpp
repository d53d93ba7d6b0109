#include "libalpa/program/message_pairs.h"

#include <set>
#include <variant>

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

std::vector<std::pair<int, int>> message_pairs(std::span<const Program* const> programs, int channel) {
  std::set<std::pair<int, int>> pairs;
  for (const Program* program : programs) {
    for (const StageTransfer& transfer : program->transfers) {
      if (transfer.channel != channel) continue;
      for (const TransferMessage& message : transfer.route.messages) pairs.insert({message.from, message.to});
    }
    if (channel != 0) continue;
    for (const MeshProgram& mesh : program->meshes)
      for (const int axis : shifted_axes(mesh))
        for (int i = 0; i < device_count(mesh.mesh.shape); ++i) {
          const DeviceIndex device(mesh.mesh.first_device + i);
          const std::vector<DeviceIndex> ring = group_of(mesh.mesh, {axis}, device);
          const auto own =
              static_cast<std::size_t>(coordinate_of(mesh.mesh, device)[static_cast<std::size_t>(axis)]);
          pairs.insert({static_cast<int>(device), static_cast<int>(ring[(own + 1) % ring.size()])});
        }
  }
  std::erase_if(pairs, [](const auto& pair) { return pair.first == pair.second; });
  return {pairs.begin(), pairs.end()};
}

}  // namespace alpa
