#pragma once
#include <filesystem>
#include <functional>

#include "libalpa/h5/provenance.h"
#include "libalpa/plan/plan.h"

namespace alpa {

class H5Writer;

/// Writes a plan as HDF5: /cluster, /model, /stages, /nodes, /values, /transfers, /prediction, /candidates,
/// /constraints where there are some, one column per fact; the graph adds names for those who look into the
/// file. The same plan gives the same file, /provenance apart. `add` writes what else is to be in it, in
/// groups of its own.
void write_plan(const std::filesystem::path&, const Plan&, const Graph&, const Provenance&,
                const std::function<void(H5Writer&)>& add = {});

/// Reads a plan that anybody may have made. Throws Error(input). Whether it fits its model is check_plan's
/// question.
Plan read_plan(const std::filesystem::path&);

}  // namespace alpa
