#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/order/simulate.h"

namespace alpa {

/// What features are, and what of a candidate they are. Those of time are parts of `unit_s`, those of bytes
/// of `unit_bytes`, so that models of different sizes have features of one size.
struct FeatureUnits {
  double seconds = 1, bytes = 1;
};

/// The names of plan_features(), in their order.
std::vector<std::string> plan_feature_names();

/// AutoSync's (Zhang et al., NeurIPS'20): of each kind of collective the sum and the greatest of their times,
/// and how many there are; further what ranks send, what of it is exposed and hidden, computation, sums of
/// gradients that share collectives, and in which order things go. Times are the cost model's.
std::vector<double> plan_features(const Plan&, const Program&, const Timeline&, const CostModel&,
                                  const FeatureUnits&);

}  // namespace alpa
