#pragma once
#include <filesystem>

#include "libalpa/model/model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// The folder that holds blocks/: the nearest share/ above this executable, as in a build folder.
std::filesystem::path share_folder();

/// A model file; blocks it does not define itself come from the share folder.
ModelDefinition load_model(const std::filesystem::path&);

/// A plan file with its model and graph, rebuilt from the plan alone and checked against it.
struct PlannedModel {
  Plan plan;
  ModelDefinition model;
  Graph graph;
};
PlannedModel read_planned_model(const std::filesystem::path& plan);

}  // namespace alpa
