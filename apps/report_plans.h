#pragma once
#include <filesystem>
#include <vector>

namespace alpa {

/// Writes a page of these plans (report/plan_page.h), with the skeleton of the share folder. `profile`: where
/// the costs of the timelines come from; "": the cluster of each plan.
void report_plans(const std::vector<std::filesystem::path>& plans, const std::filesystem::path& profile,
                  const std::filesystem::path& page);

}  // namespace alpa
