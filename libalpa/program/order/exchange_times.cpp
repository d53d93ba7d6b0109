#include "libalpa/program/order/exchange_times.h"

#include <algorithm>

#include "libalpa/program/order/simulate.h"

namespace alpa {
namespace {

double bytes_of(const MeshProgram& mesh, BufferIndex buffer) {
  return static_cast<double>(byte_count(mesh.buffers[buffer].tile));
}

/// On its way between a device and its servers. The interface of a server has what all devices send it: the
/// busier one decides.
double way_seconds(const Program& program, const MeshProgram& mesh, const Exchange& exchange,
                   const CostModel& costs) {
  double bytes = 0;
  for (const BufferIndex b : exchange.tensors) bytes += bytes_of(mesh, b);
  const double devices = all_devices(program).size(), servers = device_count(program.servers->mesh.shape);
  return costs.collective_seconds(CollectiveKind::send, {2, 1}, bytes * std::max(1.0, devices / servers), 1);
}

/// What the fullest of them does in a step.
double seconds_of_servers(const Program& program, const CostModel& costs) {
  const MeshProgram& servers = *program.servers;
  const std::vector<int> fullest = servers.fullest_coordinate();
  double all_s = 0;
  for (const Segment& segment : servers.segments) {
    const std::vector<double> seconds = instruction_seconds(program, servers, segment, costs);
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (owner_of(servers, segment.instructions[i]).is_at(fullest)) all_s += seconds[i];
  }
  return all_s;
}

}  // namespace

double exchange_seconds(const Program& program, const MeshProgram& mesh, const Exchange& exchange,
                        const CostModel& costs) {
  const double copy_s = costs.copy_seconds(bytes_of(mesh, exchange.messages));
  switch (exchange.kind) {
    case Exchange::Kind::collect:
      return copy_s * all_devices(program).size();
    case Exchange::Kind::publish:
    case Exchange::Kind::push:
      return copy_s;
    case Exchange::Kind::take:
      return program.staleness > 0 ? copy_s : least_seconds_of_exchanges(program, costs);
  }
  return 0;
}

double least_seconds_of_exchanges(const Program& program, const CostModel& costs) {
  double longest_s = seconds_of_servers(program, costs);
  const MeshProgram& mesh = program.meshes.front();
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* const exchange = std::get_if<Exchange>(&instruction.body))
        longest_s = std::max(longest_s, way_seconds(program, mesh, *exchange, costs));
  return longest_s;
}

}  // namespace alpa
