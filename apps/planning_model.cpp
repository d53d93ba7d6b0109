#include "apps/planning_model.h"

namespace alpa {

PlanningModel planning_model(const ModelDefinition& model) {
  return {model.name, model.expanded_toml, model.training.batch,
          [&](std::int64_t samples) { return training_step_graph(model, samples); },
          model.training.group_samples};
}

}  // namespace alpa
