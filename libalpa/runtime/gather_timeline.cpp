#include "libalpa/runtime/gather_timeline.h"

#include <cstdint>
#include <type_traits>

namespace alpa {

namespace {

int fullest_device(const MeshProgram& mesh) {
  const std::vector<int> coordinate = mesh.fullest_coordinate();
  DeviceIndex device = mesh.mesh.first_device;
  while (coordinate_of(mesh.mesh, device) != coordinate) device = DeviceIndex(device + 1);
  return device;
}

}  // namespace

std::vector<TimelineRow> gather_timeline(const Executor& executor, const Program& program,
                                         Communicator& ranks, Stream& stream) {
  static_assert(
      std::is_trivially_copyable_v<TimelineRow>);  // sent as its bytes: all ranks run one executable
  std::vector<TimelineRow> all, rows;
  for (const MeshProgram& stage : program.meshes) {
    const int from = fullest_device(stage);
    if (ranks.rank() != 0 && ranks.rank() != from) continue;
    if (ranks.rank() == from) rows = executor.timeline();
    auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t bytes_each = sizeof(TimelineRow);
    if (ranks.rank() == from && from != 0) {
      ranks.send(stream, &count, sizeof count, 0);
      ranks.send(stream, rows.data(), count * bytes_each, 0);
      ranks.wait_sends(stream);
    }
    if (ranks.rank() != 0) continue;
    if (from != 0) {
      ranks.receive(stream, &count, sizeof count, from);
      rows.resize(static_cast<std::size_t>(count));
      ranks.receive(stream, rows.data(), count * bytes_each, from);
    }
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace alpa
