#pragma once
#include <string>
#include <vector>

namespace alpa {

/// A model over graphs profiled, planned and trained, predicted beside measured.
struct VertexPrediction {
  std::string what;
  double predicted_s = 0, measured_s = 0;
  bool has_its_arena = false;  ///< as many bytes are allocated as the plan says
};

/// Models, batching policies, sizes of batches and one and two ranks of one thread; prints each.
std::vector<VertexPrediction> vertex_predictions(int rounds);

}  // namespace alpa
