#pragma once
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/plan/facts/plan_facts.h"

namespace alpa {

/// What deciding between two plans takes: their figures side by side, and which parameters lie otherwise.
struct FactsDifference {
  struct Figure {
    std::string title, name;  ///< "  compute" in a table, "compute_s" in JSON and CSV
    std::string unit;         ///< "s", "B"; "": a number, or words
    std::string first, second;
    double first_number = 0, second_number = 0;  ///< NaN: words
  };
  struct Layout {
    std::string parameter, type;  ///< "block.*.mlp.up"
    std::string first, second;  ///< layouts, those of several stages one after another; "": it has none such
  };
  std::vector<Figure> figures;  ///< step time, its parts, memory, how it is split
  std::vector<Layout> layouts;  ///< of parameters that lie otherwise
  int same_layouts = 0;         ///< of those that do not
};
FactsDifference facts_difference(const PlanFacts& first, const PlanFacts& second);

/// A table of the figures with their changes, and one of the layouts; `first` and `second` are titles.
std::string difference_text(const FactsDifference&, const std::string& first, const std::string& second);
JsonObject difference_json(const FactsDifference&);
/// A line for each figure, then one for each layout that differs.
std::string difference_csv(const FactsDifference&);

}  // namespace alpa
