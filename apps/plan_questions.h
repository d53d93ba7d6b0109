#pragma once
#include <filesystem>
#include <string>

#include "apps/output_form.h"

namespace alpa {

class Log;
class OptionsVisitor;

/// What is to change of a cluster, as the command line says it.
struct WhatIfOptions {
  std::string between_nodes = "x1", within_nodes = "x1", memory = "x1", compute = "x1", device;
};
void describe(WhatIfOptions&, OptionsVisitor&);

/// Prints what becomes of a plan on its cluster with these figures; without any, with each of the standard
/// changes (report/what_if.h). `profile`: where its costs come from; "": the plan's cluster.
void ask_what_if(const std::filesystem::path& plan, const std::filesystem::path& profile,
                 const WhatIfOptions&, bool as_json, Log&);

/// Prints why `other` is not the plan that was chosen: both under the same costs, term by term. `profile` as
/// above, of `plan`. Throws Error(input) for plans of different models.
void ask_why_not(const std::filesystem::path& plan, const std::filesystem::path& other,
                 const std::filesystem::path& profile, bool as_json, Log&);

/// Prints what two plans differ in; nothing where they are the same in all but provenance
/// (as JSON or CSV their figures all the same). The result is 1
/// where they differ, else 0.
int ask_differences(const std::filesystem::path& first, const std::filesystem::path& second, OutputForm);

/// Prints the second-best way to synchronise the gradients of each parameter, by the simulator. `profile` as
/// above.
void ask_runners_up(const std::filesystem::path& plan, const std::filesystem::path& profile, Log&);

}  // namespace alpa
