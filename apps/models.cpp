#include "apps/models.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/plan/check_plan.h"
#include "libalpa/plan/check_plan_file.h"
#include "libalpa/plan/plan_file.h"

namespace alpa {

std::filesystem::path share_folder() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return self.parent_path().parent_path() / "share" / "alpa";
}

ModelDefinition load_model(const std::filesystem::path& file) {
  return read_model(file, {share_folder() / "blocks"});
}

PlannedModel read_planned_model(const std::filesystem::path& path) {
  PlannedModel planned{read_plan(path), {}, {}};
  const Plan& plan = planned.plan;
  return in_step(fmt::format("rebuilding the model of plan '{}'", path.string()), [&] {
    planned.model = parse_model(plan.model_toml, "model of the plan");
    const std::int64_t batch = planned.model.training.batch;
    if (batch % plan.micro_batches != 0 || batch / plan.micro_batches != plan.micro_batch_samples)
      throw Error(ErrorKind::input,
                  fmt::format("{} micro-batches of {} samples are not the model's batch of {}",
                              plan.micro_batches, plan.micro_batch_samples, batch),
                  "the plan was altered; make it again with alpa-plan");
    if (plan.model_name != planned.model.name)
      throw Error(ErrorKind::input,
                  fmt::format("/model/name is '{}', expected '{}', as /model/toml has it", plan.model_name,
                              planned.model.name),
                  "the plan was altered; make it again with alpa-plan");
    planned.graph = training_step_graph(planned.model, plan.micro_batch_samples);
    check_plan(plan, planned.graph);
    check_told_columns(path, plan, planned.graph);
    return std::move(planned);
  });
}

}  // namespace alpa
