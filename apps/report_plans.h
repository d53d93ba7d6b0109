#pragma once
#include <filesystem>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/report/plan_page.h"

namespace alpa {

/// What a page shows of a plan, timed by the costs of `profile` ("": of its cluster). `warning`: of a busy
/// machine, or "".
PageEntry page_entry(const std::filesystem::path& plan, const std::filesystem::path& profile,
                     std::string& warning);

/// Writes a page of these plans (report/plan_page.h), with the skeleton of the share folder. `profile`: where
/// the costs of the timelines come from, with a warning where it is of
/// a busy machine; "": the cluster of each plan.
void report_plans(const std::vector<std::filesystem::path>& plans, const std::filesystem::path& profile,
                  const std::filesystem::path& page, Log&);

}  // namespace alpa
