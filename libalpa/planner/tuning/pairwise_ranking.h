#pragma once
#include <span>
#include <vector>

namespace alpa {

/// What a model learns to rank from.
struct RankedTrial {
  double predicted_s = 0, measured_s = 0;
  std::vector<double> features;
  int job = 0;  ///< trials of different ones are not compared
};

/// Ranks candidates: the one of the lower score is taken for the faster one.
struct RankingModel {
  std::vector<double> weights;  ///< [feature] log seconds for each of its units; empty: all 0
  bool has_simulator = true;    ///< the weights correct the logarithm of what it predicts; else they are all

  double score(double predicted_s, std::span<const double> features) const;
};

/// What is left of the ranking when the simulator has had its say (`has_simulator`), or the plain linear
/// model of AutoSync: the weights that make the order of all pairs of a job likeliest (pairwise logistic
/// loss, Zhang et al., NeurIPS'20) under a ridge that draws them to 0, that is to the simulator alone.
/// Convex, and solved by Newton's method: the same trials give the same weights.
RankingModel fit_ranking(std::span<const RankedTrial>, bool has_simulator = true);

/// Fractions of pairs that are put in the order in which they were measured.
struct RankingAccuracy {
  double simulator = 0, residual = 0, linear = 0;
  int pairs = 0;
  /// A residual that ranks no better than the simulator on what it has not seen is not used.
  bool residual_is_better() const { return pairs > 0 && residual > simulator; }
};

/// Five times a fifth of the trials of `job` is held out, every fifth in their order, and models that have
/// seen the others rank each of them beside all. Pairs within noise are left out.
RankingAccuracy held_out_accuracy(std::span<const RankedTrial>, int job);

}  // namespace alpa
