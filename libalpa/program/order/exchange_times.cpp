#include "libalpa/program/order/exchange_times.h"

#include <algorithm>

namespace alpa {
namespace {

double bytes_of(const MeshProgram& mesh, BufferIndex buffer) {
  return static_cast<double>(byte_count(mesh.buffers[buffer].tile));
}

int devices_of(const Program& program) { return device_count(program.meshes.front().mesh.shape); }

/// Between a device and its servers. Those of a node share its interfaces, and a server has its rows of what
/// all devices send: the busier side decides, of servers the one with the most bytes.
double way_seconds(const Program& program, const MeshProgram& mesh, const Exchange& exchange,
                   const CostModel& costs) {
  const int devices = devices_of(program), servers = device_count(program.servers->mesh.shape);
  double bytes = 0;
  std::vector<double> at_server(static_cast<std::size_t>(servers));
  for (std::size_t i = 0; i < exchange.tensors.size(); ++i) {
    const double each = bytes_of(mesh, exchange.tensors[i]);
    bytes += each;
    at_server[static_cast<std::size_t>(exchange.server[i])] += each;
  }
  const auto seconds = [&](double bytes_each, int ranks) {
    return costs.collective_seconds(CollectiveKind::send, {2, 1}, bytes_each,
                                    std::min(ranks, program.devices_per_node));
  };
  return std::max(seconds(bytes, devices), seconds(std::ranges::max(at_server) * devices, servers));
}

}  // namespace

double copied_seconds(const Program& program, const MeshProgram& mesh, const Exchange& exchange,
                      const CostModel& costs) {
  const double copy_s = costs.copy_seconds(bytes_of(mesh, exchange.messages));
  return exchange.kind == Exchange::Kind::collect ? copy_s * devices_of(program) : copy_s;
}

double exchanged_seconds(const Program& program, const CostModel& costs) {
  double longest_s = 0;
  const MeshProgram& mesh = program.meshes.front();
  for (const Segment& segment : mesh.segments)
    for (const Instruction& instruction : segment.instructions)
      if (const auto* const exchange = std::get_if<Exchange>(&instruction.body))
        longest_s = std::max(longest_s, way_seconds(program, mesh, *exchange, costs));
  return longest_s;
}

}  // namespace alpa
