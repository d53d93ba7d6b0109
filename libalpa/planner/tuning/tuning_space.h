#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libalpa/base/fingerprint.h"

namespace alpa {

/// [gene] which of its words.
using TuningChoice = std::vector<int>;

/// Something to choose, and what there is to choose from.
struct Gene {
  std::string name;                ///< differs from others'
  std::vector<std::string> words;  ///< one at least
  /// What is said of genes that are alike: parameters that differ in the numbers of their layers alone.
  std::string kind = name;
  bool operator==(const Gene&) const = default;
};

/// What is known of a choice before it is tried.
struct Assessment {
  std::string fault;              ///< why it cannot be tried; "": it can, and the others are known
  double predicted_s = 0;         ///< a step, by the simulator
  std::int64_t memory_bytes = 0;  ///< of the largest arena
  std::vector<double> features;
  Fingerprint identity;  ///< choices that come to the same have the same
};

/// A choice that somebody would make by hand.
struct NamedChoice {
  std::string name;
  TuningChoice choice;
};

/// What a search goes through. It does not know what its genes mean.
struct TuningSpace {
  std::vector<Gene> genes;
  std::vector<NamedChoice> presets;  ///< one at least; they are tried first
  std::vector<std::string> features;
  std::function<Assessment(const TuningChoice&)> assess;  ///< pure; threads may call it

  /// How many choices there are; infinity where doubles do not count that far.
  double size() const;
};

/// Where a choice comes from that is no preset.
inline constexpr const char *kFoundBySearch = "search", *kTransferred = "transferred";

/// What came of a trial.
struct TuningTrial {
  TuningChoice choice;
  std::string origin;  ///< the preset's name, kFoundBySearch or kTransferred
  Assessment known;
  std::string fault;      ///< why there is no time; ""
  double measured_s = 0;  ///< a step: the median, or the mean of those of several runs
  double spread_s = 0;    ///< the interquartile range of its steps, likewise
  int runs = 1;           ///< how often it was run
  bool is_measured() const { return fault.empty() && measured_s > 0; }
  bool is_preset() const { return origin != kFoundBySearch && origin != kTransferred; }
};

/// The one that took the least, of those that `counts` takes; -1: none.
int fastest_trial(
    const std::vector<TuningTrial>&,
    const std::function<bool(const TuningTrial&)>& counts = [](const TuningTrial&) { return true; });

}  // namespace alpa
