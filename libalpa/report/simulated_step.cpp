#include "libalpa/report/simulated_step.h"

#include <fmt/core.h>

#include "libalpa/base/units.h"
#include "libalpa/plan/facts/binding.h"
#include "libalpa/plan/facts/mesh_columns.h"

namespace alpa {
namespace {

using OfMesh = SimulatedStep::OfMesh;

std::span<const Column<OfMesh>> simulation_columns() {
  static const std::vector<Column<OfMesh>> columns = [] {
    std::vector<Column<OfMesh>> all{{"stages", [](const OfMesh& m) {
                                       return std::vector<std::int64_t>(m.stages.begin(), m.stages.end());
                                     }}};
    for (const Column<MeshPrediction>& of_mesh : mesh_columns())
      all.push_back(
          {of_mesh.name, [&of_mesh](const OfMesh& m) { return of_mesh.of(m.figures); }, of_mesh.group});
    all.push_back({"step_s", [](const OfMesh& m) { return Cell(m.step_s); }, "step"});
    return all;
  }();
  return columns;
}

}  // namespace

SimulatedStep simulated_step(const Plan& plan, const Program& program, const Timeline& timeline,
                             const CostModel& costs, double error_s) {
  SimulatedStep step{plan.model_name, costs.is_measured(), timeline.step_s, error_s, {}};
  const Indexed<MeshIndex, std::vector<StageIndex>> stages = stages_of_meshes(plan);
  const Indexed<MeshIndex, MeshPrediction> figures = mesh_predictions(program, timeline);
  for (const MeshIndex m : figures.indices()) step.meshes.push_back({stages[m], figures[m], step.step_s});
  return step;
}

std::string simulation_text(const SimulatedStep& step, const std::string& remark) {
  std::string text = fmt::format("step {}{}\n", step_time_text(step.step_s, step.step_error_s), remark);
  for (const OfMesh& mesh : step.meshes)
    text += fmt::format("{}: {}\n", stages_text(mesh.stages), times_text(mesh.figures, seconds_text));
  return text;
}

JsonObject simulation_json(const SimulatedStep& step) {
  JsonArray meshes;
  for (const OfMesh& mesh : step.meshes) {
    JsonObject json = json_of(simulation_columns(), mesh);
    for (const char* group : {"time", "memory"}) json.set(group, json_of(simulation_columns(), mesh, group));
    meshes.add(json);
  }
  JsonObject json;
  json.set("format", "alpa-plan-simulation")
      .set("format_version", "1.0")
      .set("model", step.model)
      .set("costs", step.costs_are_measured ? "measured" : "estimated")
      .set("step_s", step.step_s);
  step.step_error_s > 0 ? json.set("step_error_s", step.step_error_s) : json.set_null("step_error_s");
  return json.set("meshes", meshes);
}

std::string simulation_csv(const SimulatedStep& step) { return csv_table(simulation_columns(), step.meshes); }

}  // namespace alpa
