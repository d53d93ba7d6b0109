#include "libalpa/trainer/recent_steps.h"

#include <fmt/core.h>

#include <cstdint>

#include "libalpa/base/units.h"

namespace alpa {

std::string step_times_text(double predicted_s, const RecentSteps& steps) {
  constexpr std::size_t kEnoughToCompare = 10;
  const double measured_s = steps.median_s();
  if (predicted_s <= 0 || measured_s <= 0) return "";
  const std::string text =
      fmt::format("predicted {}, measured {} ", seconds_text(predicted_s), seconds_text(measured_s));
  if (steps.count() >= kEnoughToCompare)
    return text + fmt::format("(median), ratio {:.2f}", measured_s / predicted_s);
  return text + fmt::format("(median of {}, too few to compare)",
                            count_text(static_cast<std::int64_t>(steps.count()), "step"));
}

std::string rows_text(std::optional<double> share) {
  if (!share) return "";
  return fmt::format("rows of ids that differ: {:.1f} % of those of the first rank (distinct_ids = {:.3f})",
                     100 * *share, *share);
}

}  // namespace alpa
