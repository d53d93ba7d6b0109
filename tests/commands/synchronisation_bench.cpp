// What ways to bring gradients together take, beside formulas of bytes, link rate and arithmetic that know
// nothing of the planner.
//
//   bench_synchronisation [--check] [--row ROW] [--hosts 4|8] [--rounds N] [--steps N] [--plot FILE.svg]
//     ROW: overlap, hybrid, crossover, buckets, priority, zero, owners, parts, servers, staleness, sparse,
//     wire, low-rank, delay, presets, published, bandwidth, pairs
//
// A perceptron of equal layers (sparse: NeuMF), data-parallel over four emulated hosts of one rank at 1
// Gbit/s, or eight at 200 Mbit/s; computations are emulated. Medians of rounds in turn. Targets stand in
// synchronisation_targets.toml; with --check the exit status says whether all are reached.
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "libalpa/base/toml_document.h"
#include "tests/commands/prediction_pairs.h"
#include "tests/commands/presets_table.h"
#include "tests/commands/synchronisation_formula.h"
#include "tests/commands/synchronisation_runs.h"

namespace alpa {
namespace {

/// One by one, as the formulas have them.
const std::string kSums = "--method data-parallel --sync each",
                  kSumsOrFactors = "--method poseidon --sync each";

struct Options {
  std::string plot;  ///< of the bandwidths
  int rounds = 3, steps = 10;
  double of_formula = 1, to_best_preset = 1, near_published = 0;
  PredictionTargets predictions = {};
};

void hold_gain(const Options& o, HeldTargets& tally, double expected, double gain) {
  tally.hold(fmt::format("gain, at least {} of the formula's {:.2f}", o.of_formula, expected), gain,
             gain >= o.of_formula * expected);
}

/// Of devices on which forward and backward take as long as all sums.
Formula as_long_as_sums(double samples) {
  Formula formula{samples, 1};
  formula.flops_per_s =
      (formula.forward_s() + formula.backward_s()) / Formula::sums_s(Formula::weights() + Formula::others());
  return formula;
}

/// Sums beside the backward, where both take as long.
void overlap_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;  // so many that updates take next to nothing beside their backward
  Formula formula{samples, 1};
  formula.flops_per_s = formula.backward_s() / Formula::sums_s(Formula::weights() + Formula::others());
  fmt::print("sums alongside the backward, which takes as long: {:.1f} GFLOP/s a device\n",
             formula.flops_per_s / 1e9);
  const std::vector<double> s = Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
                                    .run({{kSums}, {kSums + " --overlap all"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.overlapped_s(), s[0] / s[1]);
}

/// Sums or factors, for few samples.
void hybrid_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 16;
  const Formula formula{samples, 5e10};
  fmt::print("sums or factors, {} samples a device: {:.1f} GFLOP/s a device\n", samples,
             formula.flops_per_s / 1e9);
  const std::vector<double> s =
      Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
          .run({{kSums}, {kSumsOrFactors}, {kSums + " --overlap all"}, {kSumsOrFactors + " --overlap all"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.hybrid_s(), s[0] / s[1]);
  fmt::print("  alongside the backward {:.2f}\n", s[2] / s[3]);
}

/// Up to how many samples a device factors are planned.
void crossover_row(const Options& o, HeldTargets& tally) {
  constexpr double flops_per_s = 5e10;
  // Poseidon's K* = 2 M N / (P (M + N)), with the time that the products take in the balance.
  const double mn = scale.width * scale.width,
               most = 2 * mn /
                      (scale.hosts * (2 * scale.width + 2 * mn * scale.bytes_per_s() / (4 * flops_per_s)));
  fmt::print(
      "samples a device up to which factors are cheaper, by the formula {:.1f}: {:.1f} GFLOP/s a device\n",
      most, flops_per_s / 1e9);
  const auto last = static_cast<int>(most);
  int most_with_factors = 0, least_with_sums = 1 << 30;
  for (const int samples : {last / 4, last - 1, last, last + 1, last + 2, 2 * last}) {
    const Measuring at(samples, flops_per_s / 1e12, 0, o.rounds, o.steps);
    const double sums_s = at.planned({kSums}).prediction.step_s,
                 either_s = at.planned({kSumsOrFactors}).prediction.step_s;
    const bool takes_factors = either_s < sums_s * (1 - 1e-9);
    if (takes_factors)
      most_with_factors = std::max(most_with_factors, samples);
    else
      least_with_sums = std::min(least_with_sums, samples);
    fmt::print("  {:>4} samples: sums {:>7.1f} ms, as planned {:>7.1f} ms, {}\n", samples, 1e3 * sums_s,
               1e3 * either_s, takes_factors ? "factors" : "sums");
  }
  // The weights that are no squares flip elsewhere: the first reads its images, so that its factors are few.
  tally.hold("planned up to, at most one off", most_with_factors,
             std::abs(most_with_factors - last) <= 1 && least_with_sums > most_with_factors);
}

/// Many small sums, or few large ones. A report: the gain is as large as the network's start of a message.
void buckets_row(const Options& o, HeldTargets&) {
  fmt::print("sums one by one or in buckets\n");
  Measuring(32, 0.25, 50, o.rounds, o.steps)
      .run({{kSums + " --overlap all"},
            {"--method data-parallel --overlap all --sync ddp"},
            {"--method data-parallel --overlap all --sync one"},
            {"--method data-parallel --overlap all --sync auto"}});
}

/// Sums that go on beside the next forward.
void priority_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print("no barrier between steps, sums take as long as forward and backward: {:.1f} GFLOP/s a device\n",
             formula.flops_per_s / 1e9);
  const std::string each = "--method data-parallel --overlap all --sync each";
  const std::vector<double> s = Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
                                    .run({{each},
                                          {each + " --updates next-forward --sync-order ready"},
                                          {each + " --updates next-forward --sync-order first-use"}});
  hold_gain(o, tally, formula.overlapped_s() / formula.without_barrier_s(), s[0] / s[2]);
}

/// Sharded updates, clipped.
void zero_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print("ZeRO-1 with clipping, sums take as long as forward and backward: {:.1f} GFLOP/s a device\n",
             formula.flops_per_s / 1e9);
  const std::string zero = "--method zero-1";
  const std::vector<double> s =
      Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps, 1)
          .run({{zero}, {zero + " --overlap all"}, {zero + " --overlap all --updates next-forward"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.split_beside_s(), s[0] / s[2]);
}

/// One device that updates everything, or all of them, each its rows.
void owners_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print("updates at owners, sums take as long as forward and backward: {:.1f} GFLOP/s a device\n",
             formula.flops_per_s / 1e9);
  const std::string owners = "--method data-parallel --sync one --owners ";
  const std::vector<double> s =
      Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
          .run({{owners + "first"}, {owners + "balanced"}, {owners + "even"}, {kSums}});
  hold_gain(o, tally, formula.lone_owner_s() / formula.in_turn_s(), s[0] / s[2]);
}

/// One large weight, in as many parts as are fastest (Parallax, EuroSys'19, 3.2).
void parts_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 16;
  constexpr double flops_per_s = 1e15;  // so that nothing but sums counts
  fmt::print("one weight of {} x {}, in parts at owners\n", scale.one_width, scale.one_width);
  const std::string one = "--method data-parallel --sync one --owners searched";
  const Measuring measuring(samples, flops_per_s / 1e12, 50, o.rounds, o.steps);
  const std::vector<int> parts{1, 2, 4, 8, 16};
  std::vector<PlannedWay> ways;
  for (const int each : parts)
    ways.push_back({fmt::format("{} --owner-parts {}", one, each), "one-layer.toml"});
  const std::vector<double> s = measuring.run(ways);
  std::size_t searched = 0;
  for (const GradientSync& sync : measuring.planned({one, "one-layer.toml"}).sync)
    searched = std::max(searched, sync.owners.size());
  // More parts than devices take as long as these; by so much measured steps differ that should not.
  constexpr double kAlike = 1.05;
  const auto best =
      std::ranges::find_if(s, [&](double each) { return each <= kAlike * std::ranges::min(s); });
  const double fewest = parts[static_cast<std::size_t>(best - s.begin())];
  tally.hold(
      fmt::format("parts, of which {} are the fewest of the fastest, to a step of twice as many", fewest),
      static_cast<double>(searched), searched >= fewest / 2 && searched <= 2 * fewest);
  hold_gain(o, tally, scale.hosts, s[0] / std::ranges::min(s));
}

/// Sums alone, with the help of further hosts (BytePS, OSDI'20).
void servers_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 16;
  constexpr double flops_per_s = 1e15;  // so that nothing but sums counts
  const double mbit = scale.mbit_of_servers;
  const std::string one = "--method data-parallel --sync one";
  fmt::print("hosts that help {} others to add up, at {} Mbit/s\n", scale.hosts, mbit);
  const std::vector<double> s =
      Measuring(samples, flops_per_s / 1e12, 50, o.rounds, o.steps, 0, mbit)
          .run({{one}, {one, "model.toml", scale.hosts / 2}, {one, "model.toml", scale.hosts}});
  const auto gain = [](int servers) { return Formula::served_s(0) / Formula::served_s(servers); };
  hold_gain(o, tally, gain(scale.hosts / 2), s[0] / s[1]);
  hold_gain(o, tally, gain(scale.hosts), s[0] / s[2]);
}

/// Servers that hold the states, as many as devices: what goes there and comes back in the step, or beside
/// later ones.
void staleness_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const double mbit = scale.mbit_of_servers;
  Formula formula{samples, 1};
  formula.flops_per_s = (formula.forward_s() + formula.backward_s()) / Formula::exchange_s(mbit);
  fmt::print(
      "parameters from servers, {} Mbit/s, which takes as long as forward and backward: {:.1f} GFLOP/s\n",
      mbit, formula.flops_per_s / 1e9);
  std::vector<PlannedWay> ways;
  for (const int staleness : {0, 1})
    ways.push_back({fmt::format("--staleness {}", staleness), "model.toml", scale.hosts});
  const std::vector<double> s =
      Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps, 0, mbit).run(ways);
  hold_gain(o, tally, formula.stale_s(0, mbit) / formula.stale_s(1, mbit), s[0] / s[1]);
}

/// Gradients of tables as sums, as rows of ids, and as rows of ids that differ.
void sparse_row(const Options& o, HeldTargets& tally) {
  const Formula formula{scale.looked_up, 1e12};
  fmt::print("{} tables of {} rows, {} ids a device\n", kTables, scale.ids, formula.samples);
  const std::string rows = "--method parallax --sync each";
  const std::vector<double> s =
      Measuring(static_cast<int>(formula.samples), formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
          .run({{kSums, "tables.toml"}, {rows, "tables.toml"}, {rows, "rows.toml"}});
  hold_gain(o, tally, Formula::tables_s() / formula.rows_s(), s[0] / s[2]);
}

/// Sums in half of the bytes, in turn with the computation.
void wire_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print(
      "gradients sent in f32, in bf16, sums take as long as forward and backward: {:.1f} GFLOP/s a device\n",
      formula.flops_per_s / 1e9);
  const std::vector<double> s = Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
                                    .run({{kSums}, {kSums, "bf16.toml"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.in_turn_in_bf16_s(), s[0] / s[1]);
}

/// Factors of low rank in place of gradients, in turn with the computation.
void low_rank_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print("gradients as factors of rank {}, sums take as long as forward and backward: {:.1f} GFLOP/s\n",
             kRank, formula.flops_per_s / 1e9);
  const std::vector<double> s = Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
                                    .run({{kSums}, {kSums, "low-rank.toml"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.low_rank_s(kRank), s[0] / s[1]);
}

/// Gradients that are used a step later.
void delay_row(const Options& o, HeldTargets& tally) {
  constexpr int samples = 512;
  const Formula formula = as_long_as_sums(samples);
  fmt::print("gradients used a step later, sums take as long as forward and backward: {:.1f} GFLOP/s\n",
             formula.flops_per_s / 1e9);
  const std::vector<double> s =
      Measuring(samples, formula.flops_per_s / 1e12, 50, o.rounds, o.steps)
          .run({{kSums}, {kSums + " --overlap all"}, {kSums + " --overlap all", "delayed.toml"}});
  hold_gain(o, tally, formula.in_turn_s() / formula.delayed_s(), s[0] / s[2]);
}

/// By the prediction, for published networks.
void presets_row(const Options& o, HeldTargets& tally) {
  hold_own_choice_to_presets(o.to_best_preset, tally);
}

/// Likewise, beside seconds that were measured (Poseidon, ATC'17).
void published_row(const Options& o, HeldTargets& tally) { hold_steps_to_published(o.near_published, tally); }

/// By the prediction, over the rate of the links.
void bandwidth_row(const Options& o, HeldTargets& tally) { sweep_bandwidth(o.to_best_preset, o.plot, tally); }

/// How true what is predicted of all of these is.
void pairs_row(const Options& o, HeldTargets& tally) {
  hold_predictions(o.rounds, o.steps, o.predictions, tally);
}

struct Row {
  std::string_view name;
  void (*run)(const Options&, HeldTargets&);
};
constexpr Row kRows[] = {
    {"overlap", overlap_row},     {"hybrid", hybrid_row},       {"crossover", crossover_row},
    {"buckets", buckets_row},     {"priority", priority_row},   {"zero", zero_row},
    {"owners", owners_row},       {"parts", parts_row},         {"servers", servers_row},
    {"staleness", staleness_row}, {"sparse", sparse_row},       {"wire", wire_row},
    {"low-rank", low_rank_row},   {"delay", delay_row},         {"presets", presets_row},
    {"published", published_row}, {"bandwidth", bandwidth_row}, {"pairs", pairs_row}};

const Scale& scale_of(const std::string& hosts) {
  if (hosts != "4" && hosts != "8") throw Error(ErrorKind::usage, "--hosts " + hosts, "4 or 8");
  return hosts == "4" ? kScaleOf4 : kScaleOf8;
}

int run(const std::vector<std::string>& words) {
  bool check = false;
  std::string row;
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--check") check = true;
    if (i + 1 < words.size() && words[i] == "--row") row = words[i + 1];
    if (i + 1 < words.size() && words[i] == "--hosts") scale = scale_of(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--plot") options.plot = words[i + 1];
    if (i + 1 < words.size() && words[i] == "--rounds") options.rounds = std::stoi(words[i + 1]);
    if (i + 1 < words.size() && words[i] == "--steps") options.steps = std::stoi(words[i + 1]);
  }
  if (!row.empty() && std::ranges::find(kRows, row, &Row::name) == std::end(kRows))
    throw Error(
        ErrorKind::usage, "no row is called " + row,
        "overlap, hybrid, crossover, buckets, priority, zero, owners, parts, servers, staleness, sparse, "
        "wire, low-rank, delay, presets, published, bandwidth or pairs");
  if (const int status = status_of_hosts(); status != 0) return status;
  TomlDocument document = read_toml(ALPA_SOURCE_DIR "/tests/commands/synchronisation_targets.toml");
  options.of_formula = document.root().number("of_formula");
  options.to_best_preset = document.root().number("to_best_preset");
  options.near_published = document.root().number("near_published");
  options.predictions = {document.root().number("median_error"), document.root().number("kendall_tau")};
  document.finish();
  fmt::print("{} emulated hosts of one rank, {} Mbit/s, computations emulated\n\n", scale.hosts, scale.mbit);
  HeldTargets tally;
  for (const Row& each : kRows)
    if (row.empty() || row == each.name) {
      each.run(options, tally);
      std::fflush(stdout);
    }
  return tally.finish() || !check ? 0 : 1;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) { return alpa::run_bench("bench_synchronisation", argc, argv, alpa::run); }
