#pragma once
#include <filesystem>

#include "libalpa/model/model.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// What the commands read at run time: blocks/, report/. It lies at ../share/alpa from the folder of this
/// executable, in a build folder, wherever it is installed, and after that was moved.
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
