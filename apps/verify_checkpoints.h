#pragma once
#include <filesystem>
#include <vector>

#include "apps/app.h"

namespace alpa {

/// `alpa-train verify`; `paths` are its arguments.
void add_verify(App&, std::vector<std::filesystem::path>& paths);

}  // namespace alpa
