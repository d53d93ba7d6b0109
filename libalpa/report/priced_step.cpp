#include "libalpa/report/priced_step.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/units.h"

namespace alpa {

PricedStep price_step(const Plan& plan, const Program& program, const CostModel& costs) {
  const Timeline timeline = simulate(program, costs);
  Plan priced = plan;
  priced.cluster = costs.cluster();
  priced.prediction.meshes = mesh_predictions(program, timeline);
  PricedStep step{.cluster = costs.cluster(),
                  .step_s = timeline.step_s,
                  .binding = binding_of(priced),
                  .stages = stages_of_meshes(plan),
                  .terms = terms_of_meshes(program, timeline, costs)};
  step.mean = mean_terms(program, step.terms);
  for (const MeshIndex m : program.meshes.indices()) {
    const MemoryUse& memory = program.meshes[m].memory;
    const std::int64_t there = costs.on(program.meshes[m].mesh).cluster().memory_bytes;
    if (!step.fullest_stages.empty() && there - memory.total >= step.spare_bytes()) continue;
    step.fullest = memory;
    step.memory_bytes = there;
    step.fullest_stages = step.stages[m];
  }
  return step;
}

std::string memory_text(const PricedStep& step) {
  const std::int64_t spare = step.spare_bytes();
  return fmt::format(
      "{} of {}, {}", bytes_text(step.fullest.total), bytes_text(step.memory_bytes),
      step.fits() ? bytes_text(spare) + " left" : bytes_text(-spare) + " too little: does not fit");
}

std::string relative_text(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : "";
}

JsonObject terms_json(const StepTerms& terms) {
  JsonObject json;
  for (const StepTerm term : step_terms()) {
    std::string name = step_term_name(term);
    std::ranges::replace(name, '-', '_');
    json.set(name + "_s", terms[term]);
  }
  return json;
}

JsonArray meshes_json(const PricedStep& step) {
  JsonArray meshes;
  for (const MeshIndex m : step.stages.indices()) {
    JsonArray stages;
    for (const StageIndex s : step.stages[m]) stages.add(static_cast<int>(s));
    meshes.add(JsonObject().set("stages", stages).set("terms", terms_json(step.terms[m])));
  }
  return meshes;
}

}  // namespace alpa
