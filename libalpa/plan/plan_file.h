#pragma once
#include <filesystem>

#include "libalpa/h5/provenance.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Writes a plan as HDF5: /cluster, /model, /stages, /nodes, /values, /transfers, /prediction, /candidates,
/// /constraints where there are some, one column per fact; the graph adds names for those who look into the
/// file. The same plan gives the same file, /provenance apart.
void write_plan(const std::filesystem::path&, const Plan&, const Graph&, const Provenance&);

/// Reads a plan that anybody may have made. Throws Error(input). Whether it fits its model is check_plan's
/// question.
Plan read_plan(const std::filesystem::path&);

}  // namespace alpa
