// A round of AutoSync: what it scores, and what of that it picks.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "libalpa/base/infinity.h"
#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/tuning/tuning_search.h"

namespace alpa {
namespace {

/// Of the fastest trials, from which others are made by changing a little.
constexpr std::size_t kParents = 5;
constexpr int kGenerations = 4;  ///< of the candidates of a round

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) both += a[i] * b[i], of_a += a[i] * a[i], of_b += b[i] * b[i];
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : 1;
}

/// Mean 0, standard deviation 1; 0 where all are the same.
void standardise(std::vector<double>& values) {
  if (values.empty()) return;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double deviation = std::sqrt(squares / count);
  for (double& v : values) v = deviation > 1e-12 ? (v - mean) / deviation : 0;
}

}  // namespace

/// In generations: a third whatever comes, the others near the fastest trials and near those of the
/// generations before that score best.
std::vector<TuningChoice> TuningSearch::proposals(const RankingModel& ranking) {
  struct Scored {
    double score;
    TuningChoice choice;
  };
  const auto keep_best = [](std::vector<Scored>& scored, std::size_t count) {
    std::ranges::stable_sort(scored, {}, &Scored::score);
    if (scored.size() > count) scored.resize(count);
  };
  std::vector<Scored> parents, found;
  for (const TuningTrial& trial : trials_)
    if (trial.is_measured()) parents.push_back({trial.measured_s, trial.choice});
  keep_best(parents, kParents);
  const std::size_t trial_parents = parents.size();
  std::set<TuningChoice> proposed;
  std::set<Fingerprint> identities = tried_identities_;
  for (int generation = 1; generation <= kGenerations; ++generation) {
    std::vector<TuningChoice> now;
    for (const NamedChoice& preset : space_.presets)
      if (generation == 1 && !tried_.contains(preset.choice) && proposed.insert(preset.choice).second)
        now.push_back(preset.choice);
    const auto until = settings_.explored * generation / kGenerations;
    for (int in_vain = 0; in_vain < settings_.explored && std::ssize(proposed) < until;) {
      const bool is_new = parents.empty() || std::ssize(proposed) % 3 == 0;
      TuningChoice choice = is_new ? random_choice() : mutated(parents[draw_below(parents.size())].choice);
      if (tried_.contains(choice) || !proposed.insert(choice).second)
        ++in_vain;
      else
        now.push_back(std::move(choice));
    }
    assess_all(now);
    for (TuningChoice& choice : now) {
      const Assessment& of = known(choice);
      if (of.fault.empty() && identities.insert(of.identity).second)
        found.push_back({ranking.score(of.predicted_s, of.features), std::move(choice)});
    }
    parents.resize(std::min(parents.size(), trial_parents));
    std::vector<Scored> best = found;
    keep_best(best, kParents);
    parents.insert(parents.end(), best.begin(), best.end());
  }
  std::vector<TuningChoice> choices;
  for (Scored& each : found) choices.push_back(std::move(each.choice));
  return choices;
}

void TuningSearch::assess_all(const std::vector<TuningChoice>& choices) {
  std::vector<TuningChoice> unknown;
  for (const TuningChoice& choice : choices)
    if (!known_.contains(choice)) unknown.push_back(choice);
  std::vector<Assessment> assessed(unknown.size());
  run_tasks(static_cast<int>(unknown.size()), thread_count(settings_.threads),
            [&](int i) { assessed[i] = space_.assess(unknown[i]); });
  for (std::size_t i = 0; i < unknown.size(); ++i)
    known_.emplace(std::move(unknown[i]), std::move(assessed[i]));
}

/// The round's trials, the next last.
std::vector<TuningChoice> TuningSearch::picked() {
  draws_ = 0;
  const RankingModel ranking = model();
  std::vector<TuningChoice> candidates = proposals(ranking);
  if (fastest_ >= 0) {
    TuningChoice lowest = descent_from(trials_[fastest_].choice, ranking, false);
    if (known(lowest).fault.empty() && !tried_identities_.contains(known(lowest).identity))
      candidates.push_back(std::move(lowest));
  }
  std::vector<double> scores;
  std::vector<std::vector<double>> features;
  for (const TuningChoice& candidate : candidates) {
    scores.push_back(ranking.score(known(candidate).predicted_s, known(candidate).features));
    features.push_back(known(candidate).features);
  }
  standardise(scores);
  for (std::size_t f = 0; f < space_.features.size(); ++f) {
    std::vector<double> column;
    for (const std::vector<double>& of : features) column.push_back(of[f]);
    standardise(column);
    for (std::size_t c = 0; c < features.size(); ++c) features[c][f] = column[c];
  }
  std::vector<std::size_t> chosen;
  std::vector<double> likeness(candidates.size(), 0.0);  // to those chosen, in all
  while (chosen.size() < std::min<std::size_t>(candidates.size(), settings_.per_round)) {
    std::size_t best = candidates.size();
    double most = -infinity;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (std::ranges::count(chosen, c) > 0) continue;
      const double mean = chosen.empty() ? 0 : likeness[c] / static_cast<double>(chosen.size());
      const double worth = -settings_.score_weight * scores[c] - settings_.spread_weight * mean;
      if (worth > most) most = worth, best = c;
    }
    chosen.push_back(best);
    for (std::size_t c = 0; c < candidates.size(); ++c) likeness[c] += cosine(features[c], features[best]);
  }
  std::vector<TuningChoice> round;
  for (const std::size_t c : chosen) round.push_back(std::move(candidates[c]));
  std::ranges::reverse(round);
  return round;
}

}  // namespace alpa
