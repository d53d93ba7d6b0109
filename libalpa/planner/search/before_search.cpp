#include "libalpa/planner/search/before_search.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/lasting_bytes.h"

namespace alpa {

void refuse_what_cannot_fit(const Graph& graph, const PlannerOptions& options, const Cluster& cluster,
                            int devices) {
  const MemoryUse lasting = lasting_bytes(graph, states_on_host(options, GraphUses(graph)));
  const std::int64_t limit = best_of_parts(cluster).memory_bytes, each = lasting.total / devices;
  if (each <= limit) return;
  throw Error(ErrorKind::infeasible,
              fmt::format("no plan fits: {} take {} on each of {} at least, {} is there: {} short",
                          lasting_text(lasting), bytes_text(each), count_text(devices, "device"),
                          bytes_text(limit), bytes_text(each - limit)),
              fmt::format("{} or more, with room for activations beside; or an optimizer with fewer states "
                          "(adafactor)",
                          count_text(lasting.total / limit + 1, "device")));
}

void check_batch(const PlanningModel& model, int micro_batches) {
  if (model.batch % (micro_batches * model.group_samples) == 0) return;
  const std::string groups =
      model.group_samples > 1 ? fmt::format(" of whole groups of {} samples", model.group_samples) : "";
  throw Error(ErrorKind::usage,
              fmt::format("a batch of {} does not divide into {} micro-batches{}", model.batch, micro_batches,
                          groups),
              groups.empty() ? "a divisor of the batch" : "a divisor of the number of groups");
}

std::vector<int> planned_micro_batches(const PlanningModel& model, const PlannerOptions& options,
                                       const CostModel& costs, int devices) {
  if (model.batch % model.group_samples != 0)
    throw Error(ErrorKind::input,
                fmt::format("a batch of {} is not a whole number of groups of {} samples", model.batch,
                            model.group_samples),
                "another [training] batch, or group_samples");
  if (options.micro_batches > 0) {
    check_batch(model, options.micro_batches);
    return {options.micro_batches};
  }
  if (std::vector<int> allowed = allowed_micro_batches(options.constraints); !allowed.empty()) return allowed;
  const std::int64_t groups = model.batch / model.group_samples;
  return micro_batch_counts(groups, costs.is_measured() ? most_profiled_micro_batches(devices) : groups);
}

}  // namespace alpa
