#include "libalpa/program/state_tiles.h"

#include <algorithm>

#include "libalpa/sharding/sharding_spec.h"

namespace alpa {

namespace {

bool has_device(const DeviceMesh& mesh, DeviceIndex device) {
  const int first = mesh.first_device;
  return device >= first && device < first + device_count(mesh.shape);
}

}  // namespace

ProgramPlace place_of(const Program& program, DeviceIndex device) {
  for (const MeshIndex m : program.meshes.indices())
    if (const DeviceMesh& mesh = program.meshes[m].mesh; has_device(mesh, device))
      return {m, coordinate_of(mesh, device)};
  return {MeshIndex(), coordinate_of(program.servers->mesh, device)};
}

int device_count(const Program& program) {
  int devices = 0;
  const auto count = [&](const MeshProgram& mesh) {
    devices = std::max<int>(devices, mesh.mesh.first_device + device_count(mesh.mesh.shape));
  };
  for (const MeshProgram& mesh : program.meshes) count(mesh);
  if (program.servers) count(*program.servers);
  return devices;
}

Indexed<StateIndex, int> state_terms(const Graph& graph, const Program& program) {
  Indexed<StateIndex, int> terms(graph.states.size(), 1);
  for (const MeshProgram& mesh : program.meshes)
    for (const StateIndex s : graph.states.indices())
      if (const BufferIndex b = mesh.state_buffer[s]; b >= 0)
        terms[s] = std::max(terms[s], term_count(mesh.buffers[b].layout, mesh.mesh.shape));
  return terms;
}

std::vector<StateTile> state_tiles(const Graph& graph, const Program& program, DeviceIndex device) {
  const ProgramPlace place = place_of(program, device);
  if (place.mesh < 0 && !program.has_states_at_servers()) return {};
  const MeshProgram& mesh = program.at(place.mesh);
  std::vector<StateTile> tiles;
  const auto add = [&](StateIndex s, BufferIndex b) {
    const Buffer& buffer = mesh.buffers[b];
    if (!buffer.owner.is_at(place.coordinate)) return;
    const Shape& whole = value_of(graph, buffer.value).type.shape;
    Shape origin = tile_origin(whole, buffer.layout, mesh.mesh.shape, place.coordinate);
    if (buffer.first_row > 0) origin[0] += buffer.first_row;
    tiles.push_back({s, buffer.tile, std::move(origin),
                     term_at(buffer.layout, mesh.mesh.shape, place.coordinate), b,
                     place.mesh < 0 && program.meshes.front().state_buffer[s] >= 0});
  };
  for (const StateIndex s : graph.states.indices()) {
    if (const BufferIndex b = mesh.state_buffer[s]; b >= 0) add(s, b);
    for (const BufferIndex part : mesh.state_parts[s]) add(s, part);
  }
  return tiles;
}

}  // namespace alpa
