#include "libalpa/planner/tuning/pairwise_ranking.h"

#include <gtest/gtest.h>

#include <cmath>

#include "libalpa/base/philox.h"

namespace alpa {
namespace {

double normal(std::uint64_t stream, std::uint64_t index) { return philox_normal_at(7, stream, index); }

/// Simulated steps about 1 s long, and `features` numbers that mean nothing but as `truth` says.
std::vector<RankedTrial> trials_of(int count, std::size_t features,
                                   const std::function<double(const RankedTrial&)>& truth, int job = 0) {
  std::vector<RankedTrial> trials;
  for (int t = 0; t < count; ++t) {
    RankedTrial trial{std::exp(0.2 * normal(job, t)), 0, {}, job};
    for (std::size_t f = 0; f < features; ++f) trial.features.push_back(normal(100 * job + f + 1, t));
    trial.measured_s = truth(trial);
    trials.push_back(std::move(trial));
  }
  return trials;
}

double as_simulated(const RankedTrial& trial) { return 3 * trial.predicted_s; }

/// The third feature takes time that the simulator does not see.
double with_hidden_time(const RankedTrial& trial) {
  return trial.predicted_s * std::exp(0.3 * trial.features[2]);
}

TEST(PairwiseRanking, LeavesAPerfectSimulatorAlone) {
  const std::vector<RankedTrial> trials = trials_of(30, 5, as_simulated);
  const RankingAccuracy accuracy = held_out_accuracy(trials, 0);
  EXPECT_EQ(accuracy.simulator, 1);
  EXPECT_FALSE(accuracy.residual_is_better());
  for (const double weight : fit_ranking(trials).weights) EXPECT_LT(std::abs(weight), 0.02);
}

TEST(PairwiseRanking, LearnsWhatTheSimulatorDoesNotSee) {
  const std::vector<RankedTrial> trials = trials_of(40, 5, with_hidden_time);
  const RankingModel model = fit_ranking(trials);
  EXPECT_NEAR(model.weights[2], 0.3, 0.05);
  for (const std::size_t f : {0, 1, 3, 4}) EXPECT_LT(std::abs(model.weights[f]), 0.05);
  const RankingAccuracy accuracy = held_out_accuracy(trials, 0);
  EXPECT_TRUE(accuracy.residual_is_better());
  EXPECT_GT(accuracy.residual, 0.95);
  EXPECT_LT(accuracy.simulator, 0.85);
}

TEST(PairwiseRanking, HoldsOutWhatItRanks) {
  // Times that nothing explains: who had seen them would rank them well with as many features as trials.
  const std::vector<RankedTrial> trials = trials_of(
      20, 20, [](const RankedTrial& trial) { return 1 + std::abs(std::sin(1e4 * trial.predicted_s)); });
  const RankingAccuracy accuracy = held_out_accuracy(trials, 0);
  EXPECT_GT(accuracy.pairs, 150);
  EXPECT_LT(accuracy.residual, 0.7);
  EXPECT_LT(accuracy.linear, 0.7);
}

TEST(PairwiseRanking, WithoutSimulatorIsAPlainLinearModel) {
  const std::vector<RankedTrial> trials =
      trials_of(40, 3, [](const RankedTrial& trial) { return std::exp(0.3 * trial.features[2]); });
  const RankingModel linear = fit_ranking(trials, false);
  EXPECT_FALSE(linear.has_simulator);
  EXPECT_EQ(linear.score(1, trials[0].features), linear.score(9, trials[0].features));
  EXPECT_GT(held_out_accuracy(trials, 0).linear, 0.95);
}

TEST(PairwiseRanking, ComparesTrialsOfOneJobOnly) {
  // The second job's machines are a hundred times as slow, and its trials say the same.
  std::vector<RankedTrial> both = trials_of(15, 5, with_hidden_time);
  for (RankedTrial& trial : trials_of(15, 5, with_hidden_time, 1)) {
    trial.measured_s *= 100;
    both.push_back(std::move(trial));
  }
  EXPECT_NEAR(fit_ranking(both).weights[2], 0.3, 0.05);
  const RankingAccuracy of_second = held_out_accuracy(both, 1);
  EXPECT_LE(of_second.pairs, 2 * 15 * 14 / 2);  // those of two folds are held out by one and by the other
  EXPECT_GT(of_second.residual, 0.93);
}

TEST(PairwiseRanking, KnowsNothingOfNoPairs) {
  const std::vector<RankedTrial> one = trials_of(1, 3, as_simulated);
  EXPECT_TRUE(fit_ranking(one).weights.empty());
  EXPECT_EQ(held_out_accuracy(one, 0).pairs, 0);
  EXPECT_FALSE(held_out_accuracy(one, 0).residual_is_better());
}

}  // namespace
}  // namespace alpa
