#pragma once
#include <filesystem>

#include "apps/app.h"
#include "apps/rank_device.h"
#include "libalpa/trainer/evaluate_checkpoint.h"

namespace alpa {

/// What `alpa-train evaluate` takes.
struct EvaluateSettings {
  std::filesystem::path plan, json;
  EvaluationSettings evaluation;
  DeviceSettings device;
  double file_timeout_s = 1800;
};
void describe(EvaluateSettings&, OptionsVisitor&);

void add_evaluate(App&, EvaluateSettings&);

}  // namespace alpa
