#include "libalpa/plan/facts/stage_columns.h"

#include <vector>

#include "libalpa/plan/facts/mesh_columns.h"

namespace alpa {
namespace {

using Stage = StageFacts;

Cell count_cell(std::int64_t number) { return number; }

std::vector<Column<Stage>> columns_of_stages() {
  std::vector<Column<Stage>> columns{
      {"stage", [](const Stage& s) { return count_cell(s.stage); }},
      {"first_layer", [](const Stage& s) { return count_cell(s.plan.first_layer); }},
      {"last_layer", [](const Stage& s) { return count_cell(s.plan.end_layer - 1); }},
      {"first_layer_name", [](const Stage& s) { return Cell(s.first_layer); }},
      {"last_layer_name", [](const Stage& s) { return Cell(s.last_layer); }},
      {"devices", [](const Stage& s) { return count_cell(s.devices()); }},
      {"first_device", [](const Stage& s) { return count_cell(s.mesh.first_device); }},
      {"mesh",
       [](const Stage& s) { return std::vector<std::int64_t>(s.mesh.shape.begin(), s.mesh.shape.end()); }},
      {"parts", [](const Stage& s) { return Cell(s.parts); }},
      {"device_memory_bytes", [](const Stage& s) { return count_cell(s.device_memory_bytes); }},
      {"split", [](const Stage& s) { return Cell(s.split.text()); }},
      {"zero", [](const Stage& s) { return count_cell(s.split.zero); }},
      {"zero_share", [](const Stage& s) { return Cell(s.split.zero_share); }},
      {"recompute", [](const Stage& s) { return Cell(recomputed_layers_text(s.plan)); }},
      {"figures_at_stage", [](const Stage& s) { return s.has_figures ? Cell() : count_cell(s.figures_at); }}};
  for (const Column<MeshPrediction>& of_mesh : mesh_columns())
    columns.push_back({of_mesh.name,
                       [&of_mesh](const Stage& s) { return s.has_figures ? of_mesh.of(s.figures) : Cell(); },
                       of_mesh.group});
  return columns;
}

}  // namespace

std::span<const Column<StageFacts>> stage_columns() {
  static const std::vector<Column<StageFacts>> columns = columns_of_stages();
  return columns;
}

std::string stages_csv(const PlanFacts& facts) { return csv_table(stage_columns(), facts.stages); }

}  // namespace alpa
