#pragma once
#include <optional>
#include <string>

#include "libalpa/report/plan_page.h"
#include "libalpa/report/run_history.h"

namespace alpa {

/// One page of HTML of a run, that needs nothing else: its curves, and the plan that it is trained by where
/// that is given. At most some thousand points of each curve are in it, so that it stays under 3 MB.
std::string run_page(const std::string& skeleton, const std::string& title, const RunHistory&,
                     const std::optional<PageEntry>& plan);

}  // namespace alpa
