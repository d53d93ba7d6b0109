#pragma once
#include <string>
#include <vector>

#include "libalpa/report/priced_step.h"

namespace alpa {

/// One of two plans that are compared.
struct ComparedPlan {
  std::string name;   ///< its file
  std::string split;  ///< "TP4 · PP16"
  int micro_batches = 1;
  PricedStep step;
};

struct TermDifference {
  StepTerm term = StepTerm::forward;
  double more_s = 0;  ///< of the other plan, mean over its devices
};

/// Two plans of one model under the same costs.
struct PlanDifference {
  ComparedPlan plan, other;

  /// Terms that either has, the largest differences first; they add up to the difference of the steps.
  std::vector<TermDifference> terms() const;
};

/// "other.h5 is slower: 2.10 ms a step in place of 1.88 ms (+11.7 %), the most by all-reduce (+0.31 ms)";
/// faster, as fast, or does not fit: with what it lacks.
std::string verdict(const PlanDifference&);

/// The verdict; terms and memory side by side; each plan's stages.
std::string why_not_text(const PlanDifference&);
JsonObject why_not_json(const PlanDifference&);

}  // namespace alpa
