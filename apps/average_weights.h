#pragma once
#include <filesystem>
#include <vector>

#include "apps/app.h"

namespace alpa {

/// What `alpa-train average` takes.
struct AverageSettings {
  std::vector<std::filesystem::path> checkpoints;
  std::filesystem::path out;
};

void add_average(App&, AverageSettings&);

}  // namespace alpa
