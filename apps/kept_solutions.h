#pragma once
#include <filesystem>
#include <functional>

#include "libalpa/base/log.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/solver/selection/selection_cache.h"

namespace alpa {

/// Runs `plan` with the solutions of a file ("": it begins with none), and writes there what is known at its
/// end, however it ends. Logs what came of it. Throws Error(input) for a file that is not one of
/// solutions; one that cannot be written is a warning, as the plan is there.
int with_kept_solutions(const std::filesystem::path& file, const Provenance&, Log&,
                        const std::function<int(SelectionCache&)>& plan);

}  // namespace alpa
