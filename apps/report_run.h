#pragma once
#include <filesystem>

#include "apps/app.h"

namespace alpa {

/// What `alpa-train report` writes of a run; "": not that.
struct RunReport {
  std::filesystem::path run_dir;
  std::filesystem::path plan,
      profile;  ///< "": the plan beside the timeline, where there is one; its cluster's
  std::filesystem::path page, csv, json, tensorboard;
};

void add_report(App&, RunReport&);

}  // namespace alpa
