#include "apps/report_plans.h"

#include "apps/models.h"
#include "apps/page_skeleton.h"
#include "apps/plan_costs.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/program/text.h"
#include "libalpa/report/plan_page.h"

namespace alpa {

PageEntry page_entry(const std::filesystem::path& file, const std::filesystem::path& profile,
                     std::string& warning) {
  const PlannedModel planned = read_planned_model(file);
  const auto [costs, remark, busy] = costs_of(planned.plan, profile);
  warning = busy;
  check_program(planned.plan, planned.graph);
  return {file.filename().string(), plan_facts(planned.plan, planned.graph),
          step_picture(planned.plan, planned.graph, costs),
          what_if(planned.plan, planned.graph, costs, standard_changes()),
          remark.empty() ? "" : "Timed" + remark + "."};
}

void report_plans(const std::vector<std::filesystem::path>& plans, const std::filesystem::path& profile,
                  const std::filesystem::path& page, Log& log) {
  AtomicFile{page};  // a folder that cannot be written is noticed before the work
  const std::string skeleton = page_skeleton({"plan_section.js", "plans.js"});
  std::vector<PageEntry> entries;
  for (const std::filesystem::path& file : plans) {
    std::string warning;
    entries.push_back(page_entry(file, profile, warning));
    if (!warning.empty() && entries.size() == 1) log.warning(warning);
  }
  publish_text(page, plan_page(skeleton, entries));
}

}  // namespace alpa
