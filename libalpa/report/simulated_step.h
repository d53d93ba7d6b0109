#pragma once
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/plan/plan.h"
#include "libalpa/program/order/simulate.h"

namespace alpa {

/// A step as it was simulated, to print.
struct SimulatedStep {
  struct OfMesh {
    std::vector<StageIndex> stages;
    MeshPrediction figures;
    double step_s = 0;  ///< of all meshes
  };
  std::string model;
  bool costs_are_measured = false;
  double step_s = 0, step_error_s = 0;  ///< 0: not known
  std::vector<OfMesh> meshes;
};
SimulatedStep simulated_step(const Plan&, const Program&, const Timeline&, const CostModel&, double error_s);

/// `remark` follows the step's time.
std::string simulation_text(const SimulatedStep&, const std::string& remark);
JsonObject simulation_json(const SimulatedStep&);
std::string simulation_csv(const SimulatedStep&);  ///< a line for each mesh

}  // namespace alpa
