#pragma once
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/plan/facts/plan_facts.h"
#include "libalpa/report/step_picture.h"
#include "libalpa/report/what_if.h"

namespace alpa {

/// A plan as it is shown on a page.
struct PageEntry {
  std::string title;  ///< its file
  PlanFacts facts;
  StepPicture picture;
  std::vector<ChangedStep> what_if;
  std::string remark;  ///< on the costs that the picture has, where they are not the plan's; "" else
};

/// As share/report/plan_section.js takes it.
JsonObject entry_json(const PageEntry&);

/// One page of HTML that needs nothing else: `skeleton` (share/report/page.html) with the data of the plans
/// as one block of JSON. Throws Error(input) where the skeleton has no place for it.
std::string plan_page(const std::string& skeleton, const std::vector<PageEntry>&);

}  // namespace alpa
