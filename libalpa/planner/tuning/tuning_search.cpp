#include "libalpa/planner/tuning/tuning_search.h"

#include <algorithm>

#include "libalpa/base/infinity.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"
#include "libalpa/base/philox.h"

namespace alpa {
namespace {

/// Draws in vain before a search says that there is nothing left.
constexpr int kMostInVain = 2000;

}  // namespace

void describe(TuningSettings& s, OptionsVisitor& visit) {
  visit.field("method", s.method, "how candidates are found, once the presets are tried",
              {{"autosync", TuningMethod::autosync,
                "simulator and what was learned of earlier trials score many, and the best that differ run"},
               {"dp", TuningMethod::descent,
                "exact buckets and descent from each preset, one choice at a time, by the simulator"},
               {"random", TuningMethod::random, "whatever comes"},
               {"exhaustive", TuningMethod::exhaustive, "all there are"}});
  visit.field("explored", s.explored, "candidates that a round of autosync scores", between(1, 100'000));
  visit.field("per_round", s.per_round, "of which so many run before the model learns of them",
              between(1, 1000));
  visit.field("score_weight", s.score_weight, "what the score counts in choosing them", at_least(0));
  visit.field("spread_weight", s.spread_weight, "what being unlike each other counts", at_least(0));
  visit.field("seed", s.seed, "of what is drawn");
  visit.field("search_threads", s.threads,
              "threads of rank 0 that simulate candidates; 0: as many as the process may run on",
              between(0, kMostThreads));
}

TuningSearch::TuningSearch(TuningSpace space, const TuningSettings& settings, EarlierTrials earlier)
    : space_(std::move(space)), settings_(settings), earlier_(std::move(earlier)) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::size_t>> kinds;
  for (std::size_t g = 0; g < space_.genes.size(); ++g)
    kinds[{space_.genes[g].kind, space_.genes[g].words}].push_back(g);
  for (auto& [kind, members] : kinds) kinds_.push_back(std::move(members));
  for (const TuningChoice& choice : earlier_.fastest) first_.push_back({kTransferred, transferred(choice)});
  if (earlier_.fastest.empty()) {
    first_.insert(first_.end(), space_.presets.begin(), space_.presets.end());
  } else {
    // Others come to their turn where they score as well as what is known to be good.
    const RankingModel ranking = model();
    const auto score = [&](const NamedChoice& preset) {
      const Assessment& of = known(preset.choice);
      return of.fault.empty() ? ranking.score(of.predicted_s, of.features) : infinity;
    };
    first_.push_back(space_.presets.front());
    first_.push_back(*std::ranges::min_element(space_.presets, {}, score));
  }
  counter_.assign(space_.genes.size(), 0);
}

/// The same words for genes of the same name, else what most of their kind have, else those of the first
/// preset.
TuningChoice TuningSearch::transferred(const TuningChoice& earlier) const {
  std::map<std::string, std::string> by_name;
  std::map<std::string, std::map<std::string, int>> by_kind;
  for (std::size_t g = 0; g < earlier_.genes.size(); ++g) {
    const Gene& gene = earlier_.genes[g];
    by_name[gene.name] = gene.words[earlier[g]];
    ++by_kind[gene.kind][gene.words[earlier[g]]];
  }
  TuningChoice choice = space_.presets.front().choice;
  for (std::size_t g = 0; g < choice.size(); ++g) {
    const Gene& gene = space_.genes[g];
    std::string word;
    if (const auto same = by_name.find(gene.name); same != by_name.end())
      word = same->second;
    else if (const auto alike = by_kind.find(gene.kind); alike != by_kind.end())
      word = std::ranges::max_element(alike->second, {}, [](const auto& each) { return each.second; })->first;
    const auto at = std::ranges::find(gene.words, word);
    if (at != gene.words.end()) choice[g] = static_cast<int>(at - gene.words.begin());
  }
  return choice;
}

const Assessment& TuningSearch::known(const TuningChoice& choice) {
  const auto at = known_.find(choice);
  return at != known_.end() ? at->second : known_.emplace(choice, space_.assess(choice)).first->second;
}

std::optional<TuningTrial> TuningSearch::taken(const TuningChoice& choice, const std::string& origin) {
  if (tried_.contains(choice)) return std::nullopt;
  const Assessment& of = known(choice);
  if (tried_identities_.contains(of.identity)) return std::nullopt;
  return TuningTrial{choice, origin, of, of.fault};
}

void TuningSearch::report(TuningTrial trial) {
  tried_.insert(trial.choice);
  tried_identities_.insert(trial.known.identity);
  if (trial.is_measured()) known_.emplace(trial.choice, trial.known);  // else a file has not kept all of it
  trials_.push_back(std::move(trial));
  find_fastest();
}

void TuningSearch::find_fastest() {
  fastest_ = fastest_trial(trials_);
  fastest_of_presets_ = fastest_trial(trials_, &TuningTrial::is_preset);
}

std::vector<int> TuningSearch::to_confirm() const {
  constexpr std::size_t kConfirmed = 3;
  std::vector<int> by_time;
  for (int t = 0; t < static_cast<int>(trials_.size()); ++t)
    if (trials_[t].is_measured()) by_time.push_back(t);
  std::ranges::stable_sort(by_time, {}, [&](int t) { return trials_[t].measured_s; });
  if (by_time.size() > kConfirmed) by_time.resize(kConfirmed);
  if (fastest_of_presets_ >= 0 && std::ranges::count(by_time, fastest_of_presets_) == 0)
    by_time.push_back(fastest_of_presets_);
  std::erase_if(by_time, [&](int t) { return trials_[t].runs > 1; });
  return by_time;
}

void TuningSearch::report_again(int trial, double measured_s, double spread_s) {
  TuningTrial& of = trials_[trial];
  const auto mean = [&](double before, double now) { return (before * of.runs + now) / (of.runs + 1); };
  of.measured_s = mean(of.measured_s, measured_s);
  of.spread_s = mean(of.spread_s, spread_s);
  ++of.runs;
  find_fastest();
}

void TuningSearch::report_failed(int trial, std::string fault) {
  trials_[trial].fault = std::move(fault);
  find_fastest();
}

std::optional<TuningTrial> TuningSearch::next() {
  for (const NamedChoice& preset : first_)
    if (auto trial = taken(preset.choice, preset.name)) return trial;
  switch (settings_.method) {
    case TuningMethod::autosync:
      return explored();
    case TuningMethod::descent:
      return descended();
    case TuningMethod::random:
      return drawn();
    case TuningMethod::exhaustive:
      return counted();
  }
  return std::nullopt;
}

double TuningSearch::draw() {
  return philox_uniform_at(static_cast<std::uint64_t>(settings_.seed), trials_.size(), draws_++);
}

int TuningSearch::draw_below(std::size_t count) {
  return std::min(static_cast<int>(draw() * static_cast<double>(count)), static_cast<int>(count) - 1);
}

/// Half of them choose for all genes of a kind at once, as equal layers rarely want different things.
TuningChoice TuningSearch::random_choice() {
  TuningChoice choice(space_.genes.size());
  const bool by_kind = draw() < 0.5;
  for (const std::vector<std::size_t>& members : kinds_) {
    const std::size_t words = space_.genes[members.front()].words.size();
    const int of_all = draw_below(words);
    for (const std::size_t g : members) choice[g] = by_kind ? of_all : draw_below(words);
  }
  return choice;
}

/// One to three changes, of one gene or of all of its kind.
TuningChoice TuningSearch::mutated(TuningChoice choice) {
  for (int change = 1 + draw_below(3); change > 0; --change) {
    const std::vector<std::size_t>& members = kinds_[draw_below(kinds_.size())];
    const int word = draw_below(space_.genes[members.front()].words.size());
    if (draw() < 0.5)
      choice[members[draw_below(members.size())]] = word;
    else
      for (const std::size_t g : members) choice[g] = word;
  }
  return choice;
}

std::optional<TuningTrial> TuningSearch::drawn() {
  draws_ = 0;
  for (int in_vain = 0; in_vain < kMostInVain; ++in_vain)
    if (auto trial = taken(random_choice(), kFoundBySearch)) return trial;
  return std::nullopt;
}

std::optional<TuningTrial> TuningSearch::counted() {
  for (;;) {
    if (counter_.empty()) return std::nullopt;
    const TuningChoice now = counter_;
    std::size_t g = 0;
    while (g < counter_.size() && ++counter_[g] == static_cast<int>(space_.genes[g].words.size()))
      counter_[g++] = 0;
    if (g == counter_.size()) counter_.clear();
    if (auto trial = taken(now, kFoundBySearch)) return trial;
  }
}

/// Takes whatever lowers the score: for all of a kind at once, and `by_gene` then for each by itself, until
/// nothing does.
TuningChoice TuningSearch::descent_from(TuningChoice choice, const RankingModel& ranking, bool by_gene) {
  const auto score = [&](const TuningChoice& of) {
    const Assessment& assessed = known(of);
    return assessed.fault.empty() ? ranking.score(assessed.predicted_s, assessed.features) : infinity;
  };
  double least = score(choice);
  const auto lowers = [&](const std::vector<std::size_t>& members) {
    std::vector<TuningChoice> others;
    for (int word = 0; word < static_cast<int>(space_.genes[members.front()].words.size()); ++word) {
      others.push_back(choice);
      for (const std::size_t g : members) others.back()[g] = word;
    }
    assess_all(others);
    bool any = false;
    for (TuningChoice& other : others)
      if (const double s = score(other); s < least) least = s, choice = std::move(other), any = true;
    return any;
  };
  for (bool any = true; any;) {
    any = false;
    for (const std::vector<std::size_t>& members : kinds_) any = lowers(members) || any;
    for (std::size_t g = 0; by_gene && g < choice.size(); ++g) any = lowers({g}) || any;
  }
  return choice;
}

/// Descents, then what lies around the fastest trial, by the simulator.
std::optional<TuningTrial> TuningSearch::descended() {
  while (begun_ < space_.presets.size())
    if (auto trial = taken(descent_from(space_.presets[begun_++].choice, {}, true), kFoundBySearch))
      return trial;
  if (fastest_ < 0) return std::nullopt;
  std::optional<TuningTrial> best;
  const auto look_at = [&](const TuningChoice& choice) {
    auto trial = taken(choice, kFoundBySearch);
    if (trial && trial->fault.empty() && (!best || trial->known.predicted_s < best->known.predicted_s))
      best = std::move(trial);
  };
  const TuningChoice& from = trials_[fastest_].choice;
  for (const std::vector<std::size_t>& members : kinds_)
    for (int word = 0; word < static_cast<int>(space_.genes[members.front()].words.size()); ++word) {
      TuningChoice of_all = from;
      for (const std::size_t g : members) {
        of_all[g] = word;
        TuningChoice of_one = from;
        of_one[g] = word;
        look_at(of_one);
      }
      look_at(of_all);
    }
  return best;
}

std::vector<RankedTrial> TuningSearch::ranked_trials() const {
  std::vector<RankedTrial> ranked = earlier_.trials;
  int own = 0;
  for (const RankedTrial& trial : ranked) own = std::max(own, trial.job + 1);
  for (const TuningTrial& trial : trials_)
    if (trial.is_measured())
      ranked.push_back({trial.known.predicted_s, trial.measured_s, trial.known.features, own});
  return ranked;
}

RankingAccuracy TuningSearch::accuracy() const {
  const std::vector<RankedTrial> ranked = ranked_trials();
  return ranked.empty() ? RankingAccuracy() : held_out_accuracy(ranked, ranked.back().job);
}

RankingModel TuningSearch::model() const {
  const std::vector<RankedTrial> ranked = ranked_trials();
  if (ranked.empty() || !held_out_accuracy(ranked, ranked.back().job).residual_is_better()) return {};
  return fit_ranking(ranked);
}

std::optional<TuningTrial> TuningSearch::explored() {
  for (bool is_new_round = false;; is_new_round = true) {
    while (!round_.empty()) {
      const TuningChoice choice = std::move(round_.back());
      round_.pop_back();
      if (auto trial = taken(choice, kFoundBySearch)) return trial;
    }
    if (is_new_round) return std::nullopt;
    round_ = picked();
  }
}

}  // namespace alpa
