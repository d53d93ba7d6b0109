#pragma once
#include <string>

namespace alpa {

/// The frame of every page (share/report/page.html) with the script that draws it, e.g. "plans.js" of that
/// folder; its data are still to be put in. Throws Error(input) where they cannot be read.
std::string page_skeleton(const std::string& script);

}  // namespace alpa
