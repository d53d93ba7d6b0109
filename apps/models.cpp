#include "apps/models.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {

std::filesystem::path share_folder() {
  std::error_code ignored;
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::filesystem::path installed = bin.parent_path() / "share" / "alpa";
  if (std::filesystem::is_directory(installed / "blocks", ignored)) return installed;
  for (std::filesystem::path up = bin; up.has_relative_path(); up = up.parent_path())
    if (std::filesystem::is_directory(up / "share" / "blocks", ignored)) return up / "share";
  return installed;
}

ModelDefinition load_model(const std::filesystem::path& file) {
  return in_step(fmt::format("reading model '{}'", file.string()),
                 [&] { return read_model(file, {share_folder() / "blocks"}); });
}

PlannedModel rebuild_model(const Plan& plan) {
  return in_step("rebuilding the model from the plan", [&] {
    PlannedModel planned{parse_model(plan.model_toml, "model of the plan"), {}};
    planned.graph = training_step_graph(planned.model, plan.micro_batch_samples);
    check_plan(plan, planned.graph);
    return planned;
  });
}

}  // namespace alpa
