#pragma once
#include <string>
#include <vector>

namespace alpa {

/// The frame of every page (share/report/page.html) with the scripts that draw it, one after another, e.g.
/// "plans.js" of that folder; its data are still to be put in. Throws Error(input) where they cannot be read.
std::string page_skeleton(const std::vector<std::string>& scripts);

}  // namespace alpa
