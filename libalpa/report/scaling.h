#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/cluster/cluster.h"

namespace alpa {

/// What a number of devices of a cluster comes to.
struct ScalingRow {
  int devices = 1;
  double step_s = 0;       ///< 0: no plan fits
  std::string split = {};  ///< "DP4 · TP2 · PP2"
  int micro_batches = 0;
  std::int64_t memory_bytes = 0;   ///< of the fullest device
  std::optional<double> gap = {};  ///< to the bound: 0.03 for at most 3 % above the best
  bool cut_short = false;          ///< the search was, by the clock
  std::string costs = {};          ///< as of PlanFacts
  int estimated_operators = 0;     ///< as of Prediction
  std::string lacks = {};          ///< why no plan fits

  bool fits() const { return step_s > 0; }
};

/// One cluster, with as many of its nodes as it takes.
struct ClusterScaling {
  Cluster cluster;
  double price_per_hour = 0;  ///< of a node, in any currency; 0: not known
  std::vector<ScalingRow> rows = {};

  int nodes(const ScalingRow& row) const;  ///< which are paid whole
  double price_per_1000_steps(const ScalingRow& row) const;
  /// Steps a second and device over those of the first row that fits.
  double efficiency(const ScalingRow& row) const;
};

/// A model on clusters of different size.
struct Scaling {
  std::string model = {};
  std::int64_t batch = 1;        ///< samples of a step
  std::int64_t tokens = 0;       ///< of a step; 0 where samples are no tokens
  double target_step_s = 0;      ///< 0: none
  std::int64_t steps = 0;        ///< of the whole training; 0: not known
  std::string measured_on = {};  ///< the machines that a profile with the costs is of; "": there is none
  std::vector<ClusterScaling> clusters = {};

  bool reaches_target(const ScalingRow&) const;
};

struct ScalingChoice {
  const ClusterScaling* cluster = nullptr;
  const ScalingRow* row = nullptr;
};

/// Of the rows that reach the target the cheapest, where all clusters have prices; else the one with the
/// fewest devices. The fastest of several. nullopt: none reaches it. Points into the argument.
std::optional<ScalingChoice> cheapest(const Scaling&);
std::optional<ScalingChoice> cheapest(const Scaling&&) = delete;

/// A table for each cluster, and what is cheapest.
std::string scaling_text(const Scaling&);
JsonObject scaling_json(const Scaling&);

/// A page like plan_page()'s, with plots.
std::string scaling_page(const std::string& skeleton, const Scaling&);

}  // namespace alpa
