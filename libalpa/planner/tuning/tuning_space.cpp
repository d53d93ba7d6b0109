#include "libalpa/planner/tuning/tuning_space.h"

namespace alpa {

double TuningSpace::size() const {
  double choices = 1;
  for (const Gene& gene : genes) choices *= static_cast<double>(gene.words.size());
  return choices;
}

int fastest_trial(const std::vector<TuningTrial>& trials,
                  const std::function<bool(const TuningTrial&)>& counts) {
  int fastest = -1;
  for (std::size_t t = 0; t < trials.size(); ++t)
    if (trials[t].is_measured() && counts(trials[t]) &&
        (fastest < 0 || trials[t].measured_s < trials[fastest].measured_s))
      fastest = static_cast<int>(t);
  return fastest;
}

}  // namespace alpa
