#pragma once
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/facts/binding.h"
#include "libalpa/program/order/step_terms.h"

namespace alpa {

/// A plan's step under one set of costs.
struct PricedStep {
  Cluster cluster;  ///< of the costs
  double step_s = 0;
  Binding binding;
  Indexed<MeshIndex, std::vector<StageIndex>> stages;
  Indexed<MeshIndex, StepTerms> terms;
  StepTerms mean = {};            ///< over all devices
  MemoryUse fullest = {};         ///< of the device that has least left
  std::int64_t memory_bytes = 0;  ///< of that device
  std::vector<StageIndex> fullest_stages = {};

  /// What the fullest device has left; below 0: what it lacks.
  std::int64_t spare_bytes() const { return memory_bytes - fullest.total; }
  bool fits() const { return spare_bytes() >= 0; }
};

/// `program` is the plan's, which costs do not change.
PricedStep price_step(const Plan&, const Program& program, const CostModel&);

/// "12.85 GiB of 12.90 GiB, 55.25 MiB left", "12.85 GiB of 6.45 GiB, 6.40 GiB too little: does not fit"
std::string memory_text(const PricedStep&);

/// "+2.9 %"
std::string relative_text(double before, double after);

/// {"forward_s": ..., "all_reduce_s": ...}
JsonObject terms_json(const StepTerms&);

/// The terms of each mesh, with its stages.
JsonArray meshes_json(const PricedStep&);

}  // namespace alpa
