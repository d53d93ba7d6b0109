#include "libalpa/program/order/served_sums.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "libalpa/program/order/wrong_program.h"

namespace alpa {

void check_served_sums(const Program& program) {
  const MeshIndex served(0);
  const MeshProgram &mesh = program.meshes[served], &servers = *program.servers;
  const auto refuse = [&](const std::string& what) { refuse_program(served, "its servers " + what); };
  if (servers.schedule != mesh.schedule || servers.segments.size() != mesh.segments.size())
    refuse("run other segments");
  for (std::size_t s = 0; s < mesh.segments.size(); ++s) {
    std::vector<std::pair<Serve, When>> wanted, given;
    for (const Instruction& instruction : mesh.segments[s].instructions)
      if (const auto serve = served_by(mesh, instruction)) wanted.push_back({*serve, instruction.when});
    for (const Instruction& instruction : servers.segments[s].instructions)
      if (const auto* const serve = std::get_if<Serve>(&instruction.body))
        given.push_back({*serve, instruction.when});
    if (given != wanted)
      refuse(fmt::format("do not help with what the {} adds up", segment_text(mesh.segments[s])));
  }
}

Program program_of_servers(const Program& program) {
  Program alone;
  alone.meshes.push_back(*program.servers);
  alone.micro_batches = program.micro_batches;
  alone.corrects_updates = program.corrects_updates;
  alone.defers_updates = program.defers_updates;
  return alone;
}

}  // namespace alpa
