// The search on a deterministic black box: the simulator with costs that it does not know, of which 20 seeds.
#include "libalpa/planner/tuning/tuning_search.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "libalpa/base/infinity.h"
#include "tests/planner/tuning/hidden_costs.h"

namespace alpa {
namespace {

using namespace testing_models;

constexpr std::uint64_t kSeeds = 20;

Cluster two_nodes() {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 2;
  return cluster;
}

/// Products with weights of different sizes, "0.weight", "1.weight", ...
Graph products(std::int64_t samples, int layers) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x{-1};
  std::int64_t from = 64;
  constexpr std::int64_t kWidths[] = {256, 32, 128, 64};
  for (int layer = 0; layer < layers; ++layer) {
    const std::int64_t to = kWidths[layer % 4];
    const std::string name = std::to_string(layer);
    g.begin_layer(name);
    if (x < 0) x = g.add("gelu", {g.input(InputKind::data, {DType::f32, {samples, from}}, "x")});
    const ValueIndex weight =
        g.state(name + ".weight", {DType::f32, {from, to}}, {Initializer::Kind::normal, 0.1}, true);
    x = g.add("gelu", {g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}}, name + ".y")});
    from = to;
  }
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), {});
}

std::function<Graph(std::int64_t)> products_of(int layers) {
  return [layers](std::int64_t samples) { return products(samples, layers); };
}

/// So few choices that all of them can be tried: four parameters that are added up, sharded or made of
/// factors, in buckets or not, overlapped or not. The presets are those that are among them.
class TinySpace {
  std::vector<std::vector<int>> words_;  ///< [gene of this][word] its place among those of the plan's choices
  std::map<TuningChoice, Assessment> known_;

 public:
  Tunable tunable{products_of(4), 16, two_nodes()};
  TuningSpace space = made();

  TuningChoice widened(TuningChoice choice) const {
    for (std::size_t g = 0; g < choice.size(); ++g) choice[g] = words_[g][choice[g]];
    return choice;
  }

 private:
  TuningSpace made() {
    TuningSpace whole = tunable.choices.space();
    const std::vector<std::vector<std::string>> kept{{"all-reduce", "zero-1", "factors"},
                                                     {"all-reduce", "zero-1", "factors"},
                                                     {"all-reduce", "zero-1", "factors"},
                                                     {"all-reduce", "zero-1", "factors"},
                                                     {"each", "one", "soonest"},
                                                     {"ready"},
                                                     {"none"},
                                                     {"none", "all"},
                                                     {"after-norm"}};
    for (std::size_t g = 0; g < kept.size(); ++g) {
      words_.emplace_back();
      for (const std::string& word : kept[g])
        words_[g].push_back(
            static_cast<int>(std::ranges::find(whole.genes[g].words, word) - whole.genes[g].words.begin()));
    }
    TuningSpace tiny{
        {}, {}, whole.features, [this](const TuningChoice& choice) { return known_.at(choice); }};
    for (std::size_t g = 0; g < kept.size(); ++g)
      tiny.genes.push_back({whole.genes[g].name, kept[g], whole.genes[g].kind});
    assess_all(tiny.genes, {});
    for (const NamedChoice& preset : whole.presets)
      if (TuningChoice narrow = narrowed(preset.choice); !narrow.empty())
        tiny.presets.push_back({preset.name, narrow});
    return tiny;
  }

  void assess_all(const std::vector<Gene>& genes, TuningChoice begun) {
    if (begun.size() == genes.size()) {
      known_[begun] = tunable.choices.assess(widened(begun));
      return;
    }
    begun.push_back(0);
    for (std::size_t word = 0; word < genes[begun.size() - 1].words.size(); ++word, ++begun.back())
      assess_all(genes, begun);
  }

  TuningChoice narrowed(const TuningChoice& choice) const {
    TuningChoice narrow;
    for (std::size_t g = 0; g < words_.size(); ++g) {
      const auto at = std::ranges::find(words_[g], choice[g]);
      if (at == words_[g].end()) return {};
      narrow.push_back(static_cast<int>(at - words_[g].begin()));
    }
    return narrow;
  }
};

double least_s(const TuningSearch& search) { return search.trials()[search.fastest()].measured_s; }
double least_of_presets_s(const TuningSearch& search) {
  return search.trials()[search.fastest_preset()].measured_s;
}

TuningSettings method(TuningMethod method, std::uint64_t seed = 1) {
  TuningSettings settings;
  settings.method = method;
  settings.seed = static_cast<std::int64_t>(seed);
  return settings;
}

TEST(TuningSearch, FindsTheOptimumOfATinyModel) {
  constexpr int kTrialsOfTiny = 48;
  const TinySpace tiny;
  ASSERT_LT(tiny.space.size(), 1000);
  ASSERT_GE(tiny.space.presets.size(), 3u);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const HiddenCosts hidden(tiny.tunable.choices, tiny.tunable.graph, tiny.tunable.cluster, seed);
    const auto measured = [&](const TuningChoice& choice) { return hidden.measured_s(tiny.widened(choice)); };
    TuningSearch all(tiny.space, method(TuningMethod::exhaustive)),
        search(tiny.space, method(TuningMethod::autosync, seed));
    run_trials(all, 1000, measured);
    run_trials(search, kTrialsOfTiny, measured);
    ASSERT_GT(all.trials().size(), 4u * kTrialsOfTiny);
    EXPECT_EQ(least_s(search), least_s(all)) << "seed " << seed;
  }
}

/// What another search may learn of this one.
EarlierTrials earlier_of(const TuningSearch& search) {
  EarlierTrials earlier;
  earlier.genes = search.space().genes;
  for (const TuningTrial& trial : search.trials())
    earlier.trials.push_back({trial.known.predicted_s, trial.measured_s, trial.known.features, 0});
  std::vector<TuningTrial> by_time = search.trials();
  std::ranges::sort(by_time, {}, &TuningTrial::measured_s);
  for (int best = 0; best < 3; ++best) earlier.fastest.push_back(by_time[best].choice);
  return earlier;
}

constexpr int kTrials = 32;

TEST(TuningSearch, IsNeverWorseThanAPresetAndUsesTheResidualOnlyWhereItRanksBetter) {
  const Tunable model(products_of(8), 16, two_nodes());
  const TuningSpace space = model.choices.space();
  double of_search = 0, of_random = 0, simulator = 0, residual = 0;  // logarithms of what is gained, in all
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const HiddenCosts hidden(model.choices, model.graph, model.cluster, seed);
    const auto measured = [&](const TuningChoice& choice) { return hidden.measured_s(choice); };
    TuningSearch search(space, method(TuningMethod::autosync, seed)),
        random(space, method(TuningMethod::random, seed));
    run_trials(search, kTrials, measured);
    run_trials(random, kTrials, measured);
    EXPECT_LE(least_s(search), least_of_presets_s(search));
    of_search += std::log(least_of_presets_s(search) / least_s(search));
    of_random += std::log(least_of_presets_s(random) / least_s(random));
    const RankingAccuracy accuracy = search.accuracy();
    EXPECT_GT(accuracy.pairs, 100);
    EXPECT_EQ(search.model().weights.empty(), !(accuracy.residual > accuracy.simulator)) << seed;
    simulator += accuracy.simulator;
    residual += accuracy.residual;
  }
  EXPECT_GT(of_search, 2 * of_random);
  EXPECT_GT(residual, simulator);
}

TEST(TuningSearch, WarmReachesInAQuarterOfTheTrialsWhatTookAllOfThemCold) {
  const Tunable small(products_of(4), 16, two_nodes()), large(products_of(8), 16, two_nodes());
  double of_like = 0, of_small = 0, of_few = 0;  // logarithms of what steps take more, in all
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const HiddenCosts hidden(large.choices, large.graph, large.cluster, seed), like(hidden, seed),
        hidden_of_small(small.choices, small.graph, small.cluster, seed);
    const auto measured = [&](const TuningChoice& choice) { return hidden.measured_s(choice); };
    const TuningSettings settings = method(TuningMethod::autosync, seed);
    TuningSearch cold(large.choices.space(), settings), elsewhere(large.choices.space(), settings),
        smaller(small.choices.space(), settings);
    run_trials(cold, kTrials, measured);
    run_trials(elsewhere, kTrials, [&](const TuningChoice& choice) { return like.measured_s(choice); });
    run_trials(smaller, kTrials,
               [&](const TuningChoice& choice) { return hidden_of_small.measured_s(choice); });
    const auto warm_s = [&](const TuningSearch& earlier) {
      TuningSearch warm(large.choices.space(), settings, earlier_of(earlier));
      run_trials(warm, kTrials / 4, measured);
      return least_s(warm);
    };
    const auto more = [&](double s) { return std::log(s / least_s(cold)); };
    double few_s = infinity;
    for (int t = 0; t < kTrials / 4; ++t) few_s = std::min(few_s, cold.trials()[t].measured_s);
    EXPECT_LE(warm_s(cold), least_s(cold)) << seed;
    of_like += more(warm_s(elsewhere)) / kSeeds;
    of_small += more(warm_s(smaller)) / kSeeds;
    of_few += more(few_s) / kSeeds;
  }
  EXPECT_LT(of_like, 0.003);  // of the same model on machines much like these
  EXPECT_LT(of_small, 0.03);  // of half the model, which does not know all of the rest
  EXPECT_GT(of_few, of_small);
}

TEST(TuningSearch, GoesOnAsItWouldHave) {
  const TinySpace tiny;
  const HiddenCosts hidden(tiny.tunable.choices, tiny.tunable.graph, tiny.tunable.cluster, 1);
  const auto measured = [&](const TuningChoice& choice) { return hidden.measured_s(tiny.widened(choice)); };
  const auto choices_of = [](const TuningSearch& search) {
    std::vector<TuningChoice> choices;
    for (const TuningTrial& trial : search.trials()) choices.push_back(trial.choice);
    return choices;
  };
  for (const TuningMethod each :
       {TuningMethod::autosync, TuningMethod::descent, TuningMethod::random, TuningMethod::exhaustive}) {
    TuningSettings settings = method(each);
    settings.per_round = 4;
    TuningSearch at_once(tiny.space, settings), resumed(tiny.space, settings);
    run_trials(at_once, 20, measured);
    const int stopped_after = static_cast<int>(tiny.space.presets.size()) + settings.per_round;
    for (int t = 0; t < stopped_after; ++t) resumed.report(at_once.trials()[t]);
    run_trials(resumed, 20, measured);
    EXPECT_EQ(choices_of(resumed), choices_of(at_once)) << static_cast<int>(each);
    const std::vector<TuningChoice> all = choices_of(at_once);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
    EXPECT_GE(all.size(), each == TuningMethod::descent ? 10u : 20u);
  }
}

TEST(TuningSearch, HasWhatDecidesRunOnceMore) {
  const TinySpace tiny;
  TuningSearch search(tiny.space, method(TuningMethod::random));
  // Each takes longer than the one before, so the first presets are the fastest.
  double next_s = 0.0020;
  run_trials(search, 8, [&](const TuningChoice&) { return next_s += 0.0001; });
  const auto again = search.to_confirm();
  EXPECT_EQ(again, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(search.fastest(), 0);
  search.report_again(0, 0.0031, 0);
  EXPECT_DOUBLE_EQ(search.trials()[0].measured_s, 0.0026);
  EXPECT_EQ(search.trials()[0].runs, 2);
  EXPECT_EQ(search.fastest(), 1);
  EXPECT_EQ(search.to_confirm(), (std::vector<int>{1, 2, 3}));
}

TEST(TuningSearch, HasTheFastestPresetRunOnceMoreToo) {
  const TinySpace tiny;
  TuningSearch search(tiny.space, method(TuningMethod::random));
  const int presets = static_cast<int>(tiny.space.presets.size());
  double next_s = 0.1;
  run_trials(search, presets + 4, [&](const TuningChoice&) { return next_s -= 0.001; });
  ASSERT_EQ(search.trials().size(), static_cast<std::size_t>(presets + 4));
  EXPECT_EQ(search.to_confirm(),
            (std::vector<int>{presets + 3, presets + 2, presets + 1, search.fastest_preset()}));
}

// Where memory is short by then, or its loss is another.
TEST(TuningSearch, DoesNotBelieveWhatFailsWhenItRunsOnceMore) {
  const TinySpace tiny;
  TuningSearch search(tiny.space, method(TuningMethod::random));
  double next_s = 0.0020;
  run_trials(search, 8, [&](const TuningChoice&) { return next_s += 0.0001; });
  search.report_failed(0, "lacks 1 GiB");
  EXPECT_FALSE(search.trials()[0].is_measured());
  EXPECT_EQ(search.fastest(), 1);
  EXPECT_EQ(search.to_confirm(), (std::vector<int>{1, 2, 3}));
}

TEST(TuningSearch, LeavesOutWhatCannotBeTried) {
  TuningSpace space{
      {{"a", {"x", "y"}}, {"b", {"x", "y"}}}, {{"first", {0, 0}}}, {}, [](const TuningChoice& choice) {
        Assessment of;
        of.predicted_s = 1 + choice[0];
        of.fault = choice[1] == 1 ? "too large" : "";
        of.identity = {0, static_cast<std::uint64_t>(choice[0] * 2 + choice[1])};
        return of;
      }};
  TuningSearch search(space, method(TuningMethod::autosync)), all(space, method(TuningMethod::exhaustive));
  const auto measured = [](const TuningChoice& choice) { return 2.0 - choice[0]; };
  run_trials(search, 10, measured);
  run_trials(all, 10, measured);
  EXPECT_EQ(search.trials().size(), 2u);
  ASSERT_EQ(all.trials().size(), 4u);
  EXPECT_EQ(all.trials()[2].fault, "too large");
  EXPECT_FALSE(all.trials()[2].is_measured());
  EXPECT_EQ(all.trials()[all.fastest()].choice, (TuningChoice{1, 0}));
  EXPECT_EQ(all.fastest_preset(), 0);
}

}  // namespace
}  // namespace alpa
