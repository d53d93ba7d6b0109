#pragma once
#include <functional>
#include <span>
#include <string>

#include "libalpa/base/columns.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What a mesh does in a step: the words and names that all text, JSON and CSV have for it.
struct TimeColumn {
  const char *word, *name;
  double MeshTime::*seconds;
};
inline constexpr TimeColumn kTimeColumns[] = {{"compute", "compute_s", &MeshTime::compute_s},
                                              {"collectives", "collectives_s", &MeshTime::collective_s},
                                              {"transfers", "transfers_s", &MeshTime::transfer_s},
                                              {"idle", "idle_s", &MeshTime::idle_s}};

/// What lies in the memory of a device, likewise.
struct MemoryColumn {
  const char *word, *name;
  std::int64_t MemoryUse::*bytes;
};
inline constexpr MemoryColumn kMemoryColumns[] = {
    {"parameters", "parameters_bytes", &MemoryUse::parameters},
    {"optimizer", "optimizer_bytes", &MemoryUse::optimizer},
    {"gradients", "gradients_bytes", &MemoryUse::gradients},
    {"activations", "activations_bytes", &MemoryUse::activations},
    {"workspace", "workspace_bytes", &MemoryUse::workspace}};
inline constexpr MemoryColumn kTotalMemory = {"total", "total_bytes", &MemoryUse::total};

/// "compute 1.20 s, collectives 0.30 s, transfers 0 s, idle 0.10 s", each in those words.
std::string times_text(const MeshTime&, const std::function<std::string(double)>& words);

JsonObject time_json(const MeshTime&);
JsonObject memory_json(const MemoryUse&);  ///< its kinds and their total

/// All that is predicted of a mesh, in the groups "time" and "memory".
std::span<const Column<MeshPrediction>> mesh_columns();

}  // namespace alpa
