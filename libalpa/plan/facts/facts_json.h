#pragma once
#include "libalpa/base/json.h"
#include "libalpa/plan/facts/plan_facts.h"

namespace alpa {

/// The facts for programs: names of members say their unit (`_s` seconds, `_bytes`), what is not known is
/// null, and words are those of the text. A new major `format_version` may change what there was; members may
/// join at any time.
JsonObject facts_json(const PlanFacts&);

}  // namespace alpa
