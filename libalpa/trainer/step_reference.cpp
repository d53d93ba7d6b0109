#include "libalpa/trainer/step_reference.h"

#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/cluster/device_facts.h"

namespace alpa {

StepReference step_reference(const Plan& plan, const Graph& graph, DType type, const std::string& device,
                             bool runs_on_planned_cluster) {
  StepReference reference;
  reference.flops = step_flops(graph, plan.micro_batches);
  if (plan.prediction.step_s > 0) reference.predicted_step_s = plan.prediction.step_s;
  if (device.empty()) return reference;
  // Where nodes differ, this rank's device says nothing of the others'.
  const std::optional<double> of_device =
      plan.cluster.parts.empty() ? data_sheet_flops_per_s(device, type) : std::nullopt;
  if (of_device) {
    reference.peak_flops_per_s = *of_device * plan.devices();
    reference.peak_origin = "data sheet";
  } else if (runs_on_planned_cluster) {
    reference.peak_flops_per_s = flops_per_s(plan.cluster, plan.devices(), type);
    reference.peak_origin = plan.is_measured() ? "measured" : "table";
  }
  return reference;
}

}  // namespace alpa
