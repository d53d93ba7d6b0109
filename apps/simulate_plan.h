#pragma once
#include <filesystem>

#include "apps/app.h"

namespace alpa {

/// What `alpa-plan simulate` is asked for.
struct SimulateSettings {
  std::filesystem::path plan, profile, trace;  ///< "": costs of the plan's cluster; no trace
  bool program = false, json = false, csv = false;
};

void add_simulate(App&, SimulateSettings&);

}  // namespace alpa
