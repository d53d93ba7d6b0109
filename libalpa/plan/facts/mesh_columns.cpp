#include "libalpa/plan/facts/mesh_columns.h"

#include <vector>

namespace alpa {

std::string times_text(const MeshTime& time, const std::function<std::string(double)>& words) {
  std::string text;
  for (const TimeColumn& column : kTimeColumns)
    text += (text.empty() ? "" : ", ") + std::string(column.word) + " " + words(time.*column.seconds);
  return text;
}

JsonObject time_json(const MeshTime& time) {
  JsonObject json;
  for (const TimeColumn& column : kTimeColumns) json.set(column.name, time.*column.seconds);
  return json;
}

JsonObject memory_json(const MemoryUse& use) {
  JsonObject json;
  for (const MemoryColumn& column : kMemoryColumns) json.set(column.name, use.*column.bytes);
  return json.set(kTotalMemory.name, use.*kTotalMemory.bytes);
}

std::span<const Column<MeshPrediction>> mesh_columns() {
  static const std::vector<Column<MeshPrediction>> columns = [] {
    using Mesh = MeshPrediction;
    std::vector<Column<Mesh>> all;
    for (const TimeColumn& column : kTimeColumns)
      all.push_back({column.name, [&column](const Mesh& m) { return Cell(m.*column.seconds); }, "time"});
    all.push_back(
        {"hidden_collectives_s", [](const Mesh& m) { return Cell(m.hidden.collective_s); }, "time"});
    all.push_back({"hidden_transfers_s", [](const Mesh& m) { return Cell(m.hidden.transfer_s); }, "time"});
    const auto memory = [&](const MemoryColumn& column) {
      all.push_back(
          {column.name, [&column](const Mesh& m) { return Cell(m.memory.*column.bytes); }, "memory"});
    };
    memory(kTotalMemory);
    for (const MemoryColumn& column : kMemoryColumns) memory(column);
    all.push_back({"host_bytes", [](const Mesh& m) { return Cell(m.memory.host); }, "memory"});
    all.push_back({"micro_batches_in_flight", [](const Mesh& m) { return Cell(m.in_flight); }, "memory"});
    return all;
  }();
  return columns;
}

}  // namespace alpa
