#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "libalpa/planner/tuning/pairwise_ranking.h"
#include "libalpa/planner/tuning/tuning_space.h"

namespace alpa {

class OptionsVisitor;

/// How the next candidate is found, once the presets are tried.
enum class TuningMethod {
  autosync,    ///< the lowest scores of those explored, kept apart from each other
  descent,     ///< "dp": exact sub-solvers, and descent from them gene by gene, by the simulator
  random,      ///< whatever comes
  exhaustive,  ///< all there are, one after another
};

struct TuningSettings {
  TuningMethod method = TuningMethod::autosync;
  int explored = 200;          ///< candidates that a round scores
  int per_round = 6;           ///< trials after which the model is fitted anew
  double score_weight = 1.0;   ///< beta of the paper
  double spread_weight = 0.3;  ///< alpha: of the mean likeness to those picked before
  std::int64_t seed = 1;
  int threads = 0;  ///< that assess; 0: as many as the process may run on. The search is the same.
};
void describe(TuningSettings&, OptionsVisitor&);

/// Earlier work on this space or on one like it.
struct EarlierTrials {
  std::vector<RankedTrial> trials;  ///< with the features of the space, in its order
  std::vector<Gene> genes;
  std::vector<TuningChoice> fastest;  ///< some of them, the best first
};

/// Which candidate to try next, by what came of those before. It runs nothing itself: next() and report()
/// take turns. The same answers in the same order give the same questions.
///
/// AutoSync (Zhang et al., NeurIPS'20): a round scores candidates (drawn ones, changed fast ones, and where a
/// descent from the fastest comes to), takes some greedily by
/// -beta x score - alpha x mean cosine of its features with those of the picked, has them run, and fits its
/// model to all that have run. The score is the simulator's time, corrected by what a model of the trials has
/// learned (RankingModel), as long as that ranks held-out trials better than the simulator alone.
class TuningSearch {
 public:
  /// `earlier`: of other jobs, which the model learns from. Their fastest are tried first then, and of the
  /// presets the first and the one of the best score.
  TuningSearch(TuningSpace, const TuningSettings&, EarlierTrials earlier = {});

  /// A choice that was not tried, and comes to something else than all that were; nullopt: there is none
  /// left, or none was found. `origin` as of TuningTrial; `fault` of one that need not be run.
  std::optional<TuningTrial> next();

  /// What came of it. Those of an earlier run of the same search are reported first, in their order.
  void report(TuningTrial);

  /// The trials that should run once more before the fastest is believed, those among the first that ran
  /// once: of many that take about as long the one that is measured fastest was lucky, too. The fastest
  /// three, and the fastest preset.
  std::vector<int> to_confirm() const;
  /// What came of one that was run once more.
  void report_again(int trial, double measured_s, double spread_s);
  void report_failed(int trial, std::string fault);

  const std::vector<TuningTrial>& trials() const { return trials_; }
  const TuningSpace& space() const { return space_; }

  /// By the trials so far.
  RankingAccuracy accuracy() const;
  RankingModel model() const;                                 ///< of the score
  int fastest_preset() const { return fastest_of_presets_; }  ///< a trial; -1: none
  int fastest() const { return fastest_; }

 private:
  const Assessment& known(const TuningChoice&);
  void find_fastest();
  std::vector<RankedTrial> ranked_trials() const;
  std::optional<TuningTrial> taken(const TuningChoice&, const std::string& origin);
  TuningChoice transferred(const TuningChoice&) const;

  std::optional<TuningTrial> explored();
  std::optional<TuningTrial> drawn();
  std::optional<TuningTrial> counted();
  std::optional<TuningTrial> descended();
  std::vector<TuningChoice> picked();
  std::vector<TuningChoice> proposals(const RankingModel&);
  void assess_all(const std::vector<TuningChoice>&);
  TuningChoice descent_from(TuningChoice, const RankingModel&, bool by_gene);

  double draw();
  int draw_below(std::size_t count);
  TuningChoice random_choice();
  TuningChoice mutated(TuningChoice);

  TuningSpace space_;
  TuningSettings settings_;
  EarlierTrials earlier_;
  std::vector<std::vector<std::size_t>> kinds_;  ///< genes that are alike and have the same words
  std::vector<NamedChoice> first_;               ///< to be tried before all others
  std::vector<TuningTrial> trials_;
  std::map<TuningChoice, Assessment> known_;
  std::set<TuningChoice> tried_;
  std::set<Fingerprint> tried_identities_;
  std::vector<TuningChoice> round_;  ///< picked and not yet given out, the next last
  std::size_t begun_ = 0;            ///< presets from which there was a descent
  TuningChoice counter_;
  std::uint64_t draws_ = 0;
  int fastest_ = -1, fastest_of_presets_ = -1;
};

}  // namespace alpa
