#include <fmt/core.h>

#include <cstdio>

#include "apps/app.h"
#include "apps/file_lines.h"
#include "apps/graph_forms.h"
#include "apps/models.h"
#include "apps/plan_costs.h"
#include "apps/rank_device.h"
#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/cluster/profile_file.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/kernels/element_types.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/profiler/device_instrument.h"
#include "libalpa/profiler/measure.h"
#include "libalpa/profiler/node_times.h"
#include "libalpa/profiler/probe.h"

namespace {

using namespace alpa;

struct Settings {
  std::filesystem::path model, out, missing;
  std::string name = "this cluster", data;
  DeviceSettings device;
  bool check = false, dry_run = false;
  std::vector<std::int64_t> micro_batch_samples;
  std::int64_t cold_mib = 0;
  double least_sample_ms = 0;
  InstrumentOptions instrument;
  MeasureOptions measure;
};

void describe(Settings& s, OptionsVisitor& visit) {
  visit.field(
      "check", s.check,
      "print each node's GFLOP/s and GB/s and mark those 10 % below the median; without --out, nothing else. "
      "With it, print too how the times measured on each node compare with the median node's");
  visit.field("dry_run", s.dry_run,
              "check model, machines and files, and say what is free on the disk; measure and write nothing");
  visit.field("micro_batch_samples", s.micro_batch_samples,
              "sizes of micro-batches to measure for, in samples; default: those that alpa-plan tries, the "
              "batch and its 2nd, 4th, 8th ... part, up to four parts per rank",
              at_least(1));
  visit.field("time_budget", s.measure.time_budget_s,
              "stop after that many seconds, most used operators first; 0: no limit", at_least(0));
  describe(s.device, visit);
  visit.field("repetitions", s.instrument.repetitions, "samples of which the median is taken",
              between(1, 1000));
  visit.field(
      "least_sample_ms", s.least_sample_ms,
      "calls are repeated within a sample until it takes that many milliseconds; 0: 1 on CPUs, 10 on GPUs",
      between(0, 10'000));
  visit.field(
      "cold_mib", s.cold_mib,
      "operands but the first go round that many MiB, so that caches are as cold as in training; 0: 64 on "
      "CPUs, 256 on GPUs",
      between(0, 1 << 20));
  visit.field("name", s.name, "what the cluster is called in plans");
}

/// What a program may count on, in bytes: of a GPU all that is free but for what is kept for libraries, of a
/// node's memory a rank's share, with a tenth left for what else goes on there.
double usable_bytes(const Device& device, int ranks_on_node) {
  const std::int64_t free = device.memory_bytes(), reserved = reserved_bytes(device.kind());
  if (free <= reserved)
    throw Error(ErrorKind::allocation,
                fmt::format("{} has {} free, and {} are kept for CUDA and its libraries",
                            device.description(), bytes_text(free), bytes_text(reserved)),
                "nvidia-smi shows what else uses it");
  if (device.kind() == DeviceKind::cuda) return static_cast<double>(free - reserved);
  return 0.9 * static_cast<double>(free) / ranks_on_node;
}

std::vector<std::int64_t> micro_batch_sizes(const Settings& settings, const TrainingOptions& training,
                                            int devices) {
  const std::int64_t batch = training.batch;
  std::vector<std::int64_t> sizes;
  for (const std::int64_t samples : settings.micro_batch_samples) {
    if (batch % samples != 0)
      throw Error(ErrorKind::usage,
                  fmt::format("--micro-batch-samples: a batch of {} does not divide into micro-batches of {}",
                              batch, samples),
                  "divisors of the batch");
    sizes.push_back(samples);
  }
  if (sizes.empty())
    for (const int count :
         micro_batch_counts(batch / training.group_samples, most_profiled_micro_batches(devices)))
      sizes.push_back(batch / count);
  return sizes;
}

std::vector<Graph> training_graphs(const Settings& settings, int devices, Log& log) {
  const ModelDefinition model = load_model(settings.model);
  // Planning tries these too.
  std::vector<ModelDefinition> variants;
  for (const ModelDefinition& form : settings.data.empty() ? std::vector<ModelDefinition>{model}
                                                           : forms_for_data(model, settings.data, log)) {
    variants.push_back(form);
    for (const auto pad : {with_padded_vocabulary, with_padded_heads})
      if (std::optional<ModelDefinition> padded = pad(form, devices)) variants.push_back(std::move(*padded));
  }
  std::vector<Graph> graphs;
  for (const std::int64_t samples : micro_batch_sizes(settings, model.training, devices))
    for (const ModelDefinition& variant : variants) graphs.push_back(training_step_graph(variant, samples));
  return graphs;
}

Machines machines_of_job(const Settings& settings, const ParallelRun& run, const Device& device,
                         RankExchange& exchange) {
  const MpiSession& session = run.session;
  const bool own = device.kind() == DeviceKind::cuda;
  const double memory = usable_bytes(device, session.ranks_on_node());
  const std::vector<double> numbers{1.0 * session.node(), 1.0 * session.ranks_on_node(), memory};
  const auto all_numbers = exchange.gather(numbers);
  const auto names = exchange.gather(run.environment.node_name);
  const auto devices = exchange.gather(device.description());
  std::vector<RankFacts> ranks;
  for (std::size_t r = 0; r < names.size(); ++r)
    ranks.push_back({static_cast<int>(all_numbers[r][0]), static_cast<int>(all_numbers[r][1]), names[r],
                     devices[r], own, static_cast<std::int64_t>(all_numbers[r][2])});
  return machines_of(settings.name, ranks);
}

/// What earlier runs measured; nothing where there was none.
std::optional<Profile> earlier_profile(const Settings& settings, const Machines& machines,
                                       RankExchange& exchange) {
  std::optional<Profile> known;
  if (std::filesystem::exists(settings.out)) known = read_profile(settings.out);
  const std::string mine = known ? profile_fingerprint(*known) : "none";
  for (const std::string& other : exchange.gather(mine))
    if (other != mine)
      throw Error(ErrorKind::input,
                  fmt::format("ranks see different files under '{}'", settings.out.string()),
                  "a folder that all nodes share");
  if (known && !known->corrections.empty())
    throw Error(ErrorKind::input,
                fmt::format("'{}' is calibrated by run '{}': no measurement is added to corrected ones",
                            settings.out.string(), known->corrections.back().run),
                "the profile that it was made from, or another file for --out");
  if (known && !same_machines(known->cluster, machines))
    throw Error(ErrorKind::input,
                fmt::format("'{}' was measured on {} x {} {}, this job has {} x {} {}", settings.out.string(),
                            known->cluster.nodes, known->cluster.devices_per_node, known->cluster.device,
                            machines.nodes, machines.devices_per_node, machines.device),
                "another file for --out");
  return known;
}

/// The operators that a list of alpa-plan --missing names; one that names others alone is another file.
Workload missing_part(Workload work, const std::filesystem::path& list) {
  const std::vector<std::string> signatures = file_lines(list);
  Workload part = only(std::move(work), signatures);
  if (part.operators.empty() && !signatures.empty())
    throw Error(ErrorKind::input, fmt::format("'{}' lists no operator of this model", list.string()),
                "the file that alpa-plan --missing wrote for it");
  return part;
}

void report(const Settings& settings, const ParallelRun& run, const std::vector<NodeSample>& nodes) {
  if (run.session.rank() != 0) return;
  if (settings.check) std::fputs(node_table(nodes).c_str(), stdout);
  const std::vector<std::string> remarks = remarks_on(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!remarks[i].empty())
      run.log.warning(fmt::format("node {} {}; all others would wait for it", nodes[i].name, remarks[i]));
}

void compare(const ParallelRun& run, const Profile& profile) {
  if (run.session.rank() != 0 || profile.nodes.size() < 2) return;
  const std::vector<NodeComparison> nodes = compare_nodes(profile);
  std::fputs(comparison_table(nodes).c_str(), stdout);
  for (const NodeComparison& node : nodes)
    if (node.is_odd())
      run.log.warning(
          fmt::format("on node {} things typically take {:.2f} times as long as on the median node",
                      node.node, node.typical));
}

/// Whether a profile lacks one of these nodes, which is reported: its samples are of other ones.
bool lacks_nodes(const Settings& settings, const ParallelRun& run, const Profile& known,
                 const std::vector<std::string>& names) {
  const std::vector<int> places = places_of(names, known);
  std::string added;
  for (std::size_t n = 0; n < names.size(); ++n)
    if (places[n] < 0) added += (added.empty() ? "" : ", ") + names[n];
  if (!added.empty() && run.session.rank() == 0)
    run.log.info(fmt::format("{} was measured on other nodes of this kind; {} is added to them",
                             settings.out.string(), added));
  return !added.empty();
}

MeasureSurroundings surroundings(const Settings& settings, const ParallelRun& run, std::vector<int> nodes,
                                 const std::string& command_line) {
  MeasureSurroundings around;
  around.nodes = std::move(nodes);
  around.now_s = monotonic_s;
  around.wants_stop = [&run] { return run.stop.is_asked(); };
  if (run.session.rank() != 0) return around;
  around.publish = [&settings, &run, command_line](const Profile& profile) {
    write_profile(
        settings.out, profile,
        provenance_here(command_line, "alpa-profile", run.environment.job_id, options_line(settings)));
  };
  around.progress = [&run](const MeasureProgress& at) {
    run.log.info(fmt::format("{} of {} measured in {}, about {} left", at.done, at.total,
                             seconds_text(at.elapsed_s), seconds_text(at.left_s)));
  };
  around.failed = [&run](const std::string& what, const std::string& why) {
    run.log.warning(fmt::format("{} failed: {}", what, why));
  };
  return around;
}

/// Cores for each rank where ranks outnumber cores; 0 where they do not.
double cores_of_rank(const ParallelRun& run, const RankDevice& rank) {
  const int busy = rank.threads * run.session.ranks_on_node();
  if (rank.device->kind() == DeviceKind::cuda || busy <= run.session.cores_of_node()) return 0;
  run.log.info(fmt::format("{} of {} share {}", count_text(run.session.ranks_on_node(), "rank"),
                           count_text(rank.threads, "thread"),
                           count_text(run.session.cores_of_node(), "core")));
  return 1.0 * run.session.cores_of_node() / run.session.ranks_on_node();
}

int profile_rank(Settings settings, const ParallelRun& run, const std::string& command_line) {
  if (settings.out.empty() && !settings.check)
    throw Error(ErrorKind::usage, "--out is missing", "--out profile.h5, or --check alone");
  const std::vector<Graph> graphs = training_graphs(settings, run.session.size(), run.log);
  if (!settings.out.empty())
    AtomicFile(settings.out);  // a folder that cannot be written is noticed before the work
  const RankDevice rank = make_rank_device(settings.device, run.session, run.environment);
  for (const Graph& graph : graphs) check_element_types(*rank.device, graph);
  RankExchange exchange(*rank.device, *rank.world);
  const Machines machines = machines_of_job(settings, run, *rank.device, exchange);
  const std::optional<Profile> known =
      settings.out.empty() ? std::nullopt : earlier_profile(settings, machines, exchange);
  if (settings.dry_run) {
    if (!settings.missing.empty()) file_lines(settings.missing);
    const std::string room = settings.out.empty() ? "" : "; " + room_text(settings.out);
    if (run.session.rank() == 0)
      run.log.info(fmt::format(
          "dry run: the model, {} on {} and files are in order{}; nothing was measured or written",
          count_text(run.session.size(), "rank"), rank.device->description(), room));
    return 0;
  }

  const InstrumentOptions usual = usual_options(settings.device.device);
  settings.instrument.cold_bytes = settings.cold_mib > 0 ? settings.cold_mib << 20 : usual.cold_bytes;
  settings.instrument.least_sample_s =
      settings.least_sample_ms > 0 ? 1e-3 * settings.least_sample_ms : usual.least_sample_s;
  settings.instrument.warm_up_s = usual.warm_up_s;
  settings.instrument.cores_of_rank = cores_of_rank(run, rank);
  settings.instrument.most_bytes = machines.memory_bytes;
  DeviceInstrument instrument(*rank.device, *rank.world, machines.devices_per_node, settings.instrument);
  Profile profile;
  if (known) profile = *known;
  if (settings.check || !known || lacks_nodes(settings, run, *known, machines.node_names)) {
    const RankRates rates = probe_rates(op_catalog(), instrument);
    const std::vector<NodeSample> nodes = node_samples(machines, rates);
    report(settings, run, nodes);
    put_nodes(profile, nodes);
    if (settings.out.empty()) return 0;
    if (!known) profile.cluster = probe_cluster(machines, rates, op_catalog(), instrument);
    if (!known && profile.cluster.overlap_slowdown != 1 && run.session.rank() == 0)
      run.log.info(fmt::format("computation takes {:.2f} times as long alongside communication",
                               profile.cluster.overlap_slowdown));
  }

  Workload work = workload(graphs, profile.cluster);
  if (!settings.missing.empty()) work = missing_part(std::move(work), settings.missing);
  std::vector<int> places = places_of(machines.node_names, profile);
  const MeasureResult result = measure(work, std::move(profile), instrument, settings.measure,
                                       surroundings(settings, run, std::move(places), command_line));
  if (settings.check) compare(run, result.profile);
  const std::string warning = warning_of(settings.out, result.profile);
  if (run.session.rank() == 0 && !warning.empty()) run.log.warning(warning);
  if (run.session.rank() == 0)
    run.log.info(fmt::format("{}: {} measured, {} known before, {} failed, {} left", settings.out.string(),
                             result.measured, result.reused, result.failed, result.left));
  return result.was_stopped ? static_cast<int>(ErrorKind::stopped_early) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  App app("alpa-profile", "measure, on the ranks of an MPI job, what plans for a model can ask for");
  app.argument("MODEL.toml", settings.model, "model definition")
      .option("--out", settings.out,
              "profile to write (HDF5), which only --check can do without; one that exists is added to, also "
              "from other nodes of the same kind")
      .continues()
      .option("--data", settings.data, kGraphDataHelp)
      .option("--missing", settings.missing,
              "measure only the operators that this file lists (written by alpa-plan --missing)")
      .options(settings)
      .may_end_with({ErrorKind::stopped_early})
      .example("mpiexec -n 4 alpa-profile configs/models/gpt-demo.toml --out profile.h5",
               "measure for 4 CPU ranks of this machine")
      .example("srun --mpi=pmi2 alpa-profile gpt.toml --out profile.h5 --check --device cuda",
               "check the nodes of a job, then measure on their GPUs");
  return app.run_parallel(
      argc, argv, [&](const ParallelRun& run) { return profile_rank(settings, run, app.command_line()); });
}
