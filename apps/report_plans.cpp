#include "apps/report_plans.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

#include "apps/models.h"
#include "apps/plan_costs.h"
#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/program/text.h"
#include "libalpa/report/plan_page.h"

namespace alpa {
namespace {

std::string page_skeleton() {
  const std::filesystem::path file = share_folder() / "report" / "page.html";
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw Error(ErrorKind::input, fmt::format("'{}' cannot be read", file.string()),
                "share/ beside the commands, as it was installed");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void report_plans(const std::vector<std::filesystem::path>& plans, const std::filesystem::path& profile,
                  const std::filesystem::path& page, Log& log) {
  AtomicFile{page};  // a folder that cannot be written is noticed before the work
  const std::string skeleton = page_skeleton();
  std::vector<PageEntry> entries;
  for (const std::filesystem::path& file : plans) {
    const PlannedModel planned = read_planned_model(file);
    const auto [costs, remark, warning] = costs_of(planned.plan, profile);
    if (!warning.empty() && entries.empty()) log.warning(warning);
    check_program(planned.plan, planned.graph);
    entries.push_back({file.filename().string(), plan_facts(planned.plan, planned.graph),
                       step_picture(planned.plan, planned.graph, costs),
                       remark.empty() ? "" : "Timed" + remark + "."});
  }
  publish_text(page, plan_page(skeleton, entries));
}

}  // namespace alpa
