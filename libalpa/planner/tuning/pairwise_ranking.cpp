#include "libalpa/planner/tuning/pairwise_ranking.h"

#include <algorithm>
#include <cmath>

#include "libalpa/base/positive_definite.h"

namespace alpa {
namespace {

/// Trials that took less apart than this are no evidence.
constexpr double kTie = 0.003;
/// A difference of scores, in logarithms of seconds, that makes the order e times as likely as the other.
constexpr double kTemperature = 0.01;
/// Of weights by which a feature's standard deviation moves a score, in temperatures; beside the mean loss
/// of pairs.
constexpr double kRidge = 1e-4;

struct Pair {
  std::size_t faster, slower;
};

template <class IsTaken>
std::vector<Pair> pairs_of(std::span<const RankedTrial> trials, const IsTaken& is_taken) {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < trials.size(); ++a)
    for (std::size_t b = a + 1; b < trials.size(); ++b) {
      if (trials[a].job != trials[b].job || !is_taken(a, b)) continue;
      const double apart = std::log(trials[a].measured_s / trials[b].measured_s);
      if (std::abs(apart) >= kTie) pairs.push_back(apart < 0 ? Pair{a, b} : Pair{b, a});
    }
  return pairs;
}

/// [feature] 0 where it is the same in all trials.
std::vector<double> deviations(std::span<const RankedTrial> trials) {
  std::vector<double> of(trials[0].features.size(), 0.0);
  for (std::size_t f = 0; f < of.size(); ++f) {
    double sum = 0, squares = 0;
    for (const RankedTrial& trial : trials) sum += trial.features[f];
    const double mean = sum / static_cast<double>(trials.size());
    for (const RankedTrial& trial : trials) squares += std::pow(trial.features[f] - mean, 2);
    of[f] = std::sqrt(squares / static_cast<double>(trials.size()));
    if (of[f] <= 1e-9 * std::abs(mean)) of[f] = 0;
  }
  return of;
}

/// Slower less faster: what the model is to make greater than 0, in temperatures.
struct Margins {
  std::vector<double> known;                  ///< [pair] by the simulator
  std::vector<std::vector<double>> features;  ///< [pair][feature] by their standard deviations
};

Margins margins_of(std::span<const RankedTrial> trials, const std::vector<Pair>& pairs, bool has_simulator) {
  const std::vector<double> deviation = deviations(trials);
  Margins margins;
  for (const auto& [faster, slower] : pairs) {
    const RankedTrial &a = trials[slower], &b = trials[faster];
    margins.known.push_back(has_simulator ? std::log(a.predicted_s / b.predicted_s) / kTemperature : 0.0);
    std::vector<double>& of = margins.features.emplace_back(deviation.size(), 0.0);
    for (std::size_t f = 0; f < of.size(); ++f)
      if (deviation[f] > 0) of[f] = (a.features[f] - b.features[f]) / deviation[f];
  }
  return margins;
}

/// Mean of log(1 + exp(-margin)), and the ridge.
double loss_of(const Margins& margins, const std::vector<double>& weights) {
  double sum = 0, squares = 0;
  for (std::size_t p = 0; p < margins.known.size(); ++p) {
    double margin = margins.known[p];
    for (std::size_t f = 0; f < weights.size(); ++f) margin += weights[f] * margins.features[p][f];
    sum += margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }
  for (const double w : weights) squares += w * w;
  return sum / static_cast<double>(margins.known.size()) + 0.5 * kRidge * squares;
}

std::vector<double> likeliest_weights(const Margins& margins, std::size_t features) {
  const auto count = static_cast<double>(margins.known.size());
  std::vector<double> weights(features, 0.0);
  double loss = loss_of(margins, weights);
  for (int turn = 0; turn < 30; ++turn) {
    std::vector<double> slope(features, 0.0), curve(features * features, 0.0);
    for (std::size_t p = 0; p < margins.known.size(); ++p) {
      const std::vector<double>& x = margins.features[p];
      double margin = margins.known[p];
      for (std::size_t f = 0; f < features; ++f) margin += weights[f] * x[f];
      const double wrong = 1 / (1 + std::exp(margin)), bend = wrong * (1 - wrong);
      for (std::size_t f = 0; f < features; ++f) {
        slope[f] -= wrong * x[f] / count;
        for (std::size_t g = 0; g <= f; ++g) curve[f * features + g] += bend * x[f] * x[g] / count;
      }
    }
    for (std::size_t f = 0; f < features; ++f) {
      slope[f] += kRidge * weights[f];
      curve[f * features + f] += kRidge;
    }
    const std::vector<double> step = solved(std::move(curve), slope);
    double length = 1, gained = 0;
    std::vector<double> next;
    for (int halved = 0; halved < 30; ++halved, length /= 2) {
      next = weights;
      for (std::size_t f = 0; f < features; ++f) next[f] -= length * step[f];
      const double then = loss_of(margins, next);
      if (then < loss) {
        gained = loss - then;
        loss = then;
        weights = next;
        break;
      }
    }
    if (gained < 1e-5) break;
  }
  return weights;
}

RankingModel fit_on(std::span<const RankedTrial> trials, const std::vector<Pair>& pairs, bool has_simulator) {
  RankingModel model{{}, has_simulator};
  if (pairs.empty()) return model;
  const std::vector<double> deviation = deviations(trials);
  model.weights = likeliest_weights(margins_of(trials, pairs, has_simulator), deviation.size());
  for (std::size_t f = 0; f < deviation.size(); ++f)
    model.weights[f] = deviation[f] > 0 ? model.weights[f] * kTemperature / deviation[f] : 0;
  return model;
}

}  // namespace

double RankingModel::score(double predicted_s, std::span<const double> features) const {
  double score = has_simulator ? std::log(predicted_s) : 0;
  for (std::size_t f = 0; f < weights.size(); ++f) score += weights[f] * features[f];
  return score;
}

RankingModel fit_ranking(std::span<const RankedTrial> trials, bool has_simulator) {
  return fit_on(trials, pairs_of(trials, [](std::size_t, std::size_t) { return true; }), has_simulator);
}

RankingAccuracy held_out_accuracy(std::span<const RankedTrial> trials, int job) {
  constexpr int kFolds = 5;
  std::vector<int> fold(trials.size(), -1);  // of other jobs: never held out
  int own = 0;
  for (std::size_t t = 0; t < trials.size(); ++t)
    if (trials[t].job == job) fold[t] = own++ % kFolds;
  RankingAccuracy accuracy;
  double simulator = 0, residual = 0, linear = 0;
  for (int held = 0; held < kFolds; ++held) {
    const auto known =
        pairs_of(trials, [&](std::size_t a, std::size_t b) { return fold[a] != held && fold[b] != held; });
    const auto asked = pairs_of(trials, [&](std::size_t a, std::size_t b) {
      return fold[a] >= 0 && fold[b] >= 0 && (fold[a] == held || fold[b] == held);
    });
    if (asked.empty()) continue;
    const RankingModel of_residual = fit_on(trials, known, true), of_linear = fit_on(trials, known, false);
    for (const auto& [faster, slower] : asked) {
      const RankedTrial &a = trials[faster], &b = trials[slower];
      const auto right = [&](const RankingModel& model) {
        const double apart = model.score(b.predicted_s, b.features) - model.score(a.predicted_s, a.features);
        return apart > 0 ? 1.0 : apart == 0 ? 0.5 : 0.0;
      };
      simulator += right(RankingModel());
      residual += right(of_residual);
      linear += right(of_linear);
      ++accuracy.pairs;
    }
  }
  if (accuracy.pairs > 0) {
    accuracy.simulator = simulator / accuracy.pairs;
    accuracy.residual = residual / accuracy.pairs;
    accuracy.linear = linear / accuracy.pairs;
  }
  return accuracy;
}

}  // namespace alpa
