#include "libalpa/planner/search/stage_shortfall.h"

namespace alpa {

StageShortfall least_shortfall(const StageSpans& spans, const StageEstimates& estimates,
                               std::int64_t memory_bytes) {
  const std::vector<StageTemplate>& templates = estimates.templates();
  for (int unit = 0; unit < spans.units(); ++unit) {
    StageShortfall least;
    for (const StageSpan& span : spans.all()) {
      if (span.first_unit > unit || span.end_unit <= unit) continue;
      const int first = spans.first_layer(span), end = spans.end_layer(span);
      for (std::size_t t = 0; t < templates.size(); ++t) {
        if (device_count(templates[t].mesh) != span.devices) continue;
        const std::int64_t bytes = estimates.least_memory(static_cast<int>(t), first, end);
        if (least.bytes == 0 || bytes < least.bytes) least = {first, end, span.devices, bytes};
      }
    }
    if (least.bytes > memory_bytes) return least;
  }
  return {};
}

}  // namespace alpa
