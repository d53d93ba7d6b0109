#include <fmt/core.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <cstdio>
#include <limits>
#include <set>
#include <string_view>

#include "apps/app.h"
#include "apps/calibrate_profile.h"
#include "apps/graph_forms.h"
#include "apps/kept_solutions.h"
#include "apps/models.h"
#include "apps/output_form.h"
#include "apps/plan_costs.h"
#include "apps/plan_questions.h"
#include "apps/planning_model.h"
#include "apps/report_plans.h"
#include "apps/simulate_plan.h"
#include "apps/solve_instance.h"
#include "apps/sweep_devices.h"
#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/device_words.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/plan/check_plan_file.h"
#include "libalpa/plan/explain.h"
#include "libalpa/plan/facts/facts_json.h"
#include "libalpa/plan/facts/stage_columns.h"
#include "libalpa/plan/plan_file.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/program/text.h"

namespace {

using namespace alpa;

constexpr const char* kFullHelp =
    "print all of the explanation: layouts, time and memory of each stage, every plan that was tried";

constexpr const char* kCacheHelp =
    "file of what was solved (HDF5; made where there is none, else added to): planning again, or after a "
    "small change, takes from it what is to be solved again, and comes to the same plan sooner";

struct Settings {
  std::filesystem::path model, profile, cluster, pin, constraints, cache, out, missing, first, second,
      run_dir;
  std::vector<std::filesystem::path> plans;
  std::string data;  ///< of a model over graphs
  bool full = false, json = false, csv = false, runners_up = false, dry_run = false;
  PlannerOptions planner;
  SolveOptions solve;
  WhatIfOptions what_if;
  SweepOptions sweep;
  SimulateSettings simulate;
};

/// What is known of a plan: on one screen, or all.
std::string explained(const PlanFacts& facts, const std::filesystem::path& file, bool full) {
  return full ? plan_details(facts) : plan_summary(facts, file.string()) + constraint_table(facts);
}

/// A plan is made without kernels, so one for GPUs may hold what they cannot compute yet.
void warn_of_missing_kernels(const Plan& plan, const Graph& graph, Log& log) {
  if (plan.cluster.kind == DeviceKind::cpu) return;
  std::set<std::string_view> names;
  for (const Node& node : graph.nodes)
    if (is_cpu_only(*node.op)) names.insert(node.op->name);
  if (!names.empty())
    log.warning(
        fmt::format("there are no kernels for GPUs yet of {}: this plan for {} cannot be trained there",
                    fmt::join(names, ", "), plan.cluster.device));
}

Provenance provenance_of(const App& app, const std::string& options = {}) {
  return provenance_here(app.command_line(), "alpa-plan", read_environment().job_id, options);
}

int plan_model(const Settings& settings, const StopRequest& stop, SelectionCache& cache, App& app) {
  for (const std::filesystem::path& written : {settings.out, settings.missing})
    if (!written.empty())
      AtomicFile{written};  // a folder that cannot be written is noticed before the search
  ModelDefinition model = load_model(settings.model);
  PlanningCosts costs =
      planning_costs(read_planning_profile(settings.profile, app.log()), settings.cluster, app.log());
  if (!settings.data.empty())
    model = fastest_form(forms_for_data(model, settings.data, app.log()), costs.costs, app.log());
  PlannerOptions options = settings.planner;
  options.compare_with_search = true;
  options.stop = &stop;
  options.cache = &cache;
  if (!settings.pin.empty()) options.pin = read_pin(settings.pin);
  if (!settings.constraints.empty()) options.constraints = read_constraints(settings.constraints);
  options = with_preset(std::move(options));
  if (options.servers > 0) {
    const int devices = options.pin ? device_count(*options.pin) : options.devices;
    costs.costs = costs.costs.extrapolated(with_servers(costs.costs.cluster(), devices, options.servers));
  }
  if (settings.dry_run) {
    check_options(costs.costs, options);
    const int devices = options.devices > 0 ? options.devices : costs.costs.cluster().devices();
    app.log().info(fmt::format(
        "dry run: '{}', {} of '{}' and all options are in order; {}; nothing was planned or written",
        model.name, count_text(devices, "device"), costs.costs.cluster().name, room_text(settings.out)));
    return 0;
  }
  Plan plan = plan_with_padding(model, costs.costs, options, app.log());
  costs.state_origin(plan);
  const Graph graph = training_step_graph(model, plan.micro_batch_samples);
  write_plan(settings.out, plan, graph, provenance_of(app, options_line(options)));
  app.log().info(model_text(model, graph));
  warn_of_missing_kernels(plan, graph, app.log());
  if (!settings.missing.empty()) {
    std::string lines;
    for (const std::string& signature : costs.costs.missing()) lines += signature + "\n";
    publish_text(settings.missing, lines);
  }
  std::fputs(explained(plan_facts(plan, graph), settings.out, settings.full).c_str(), stdout);
  if (!plan.prediction.hit_time_limit || !stop.is_asked()) return 0;
  app.log().warning(fmt::format("'{}' is the best plan so far", settings.out.string()));
  return static_cast<int>(ErrorKind::stopped_early);
}

int plan_model(const Settings& settings, App& app) {
  const StopRequest stop;
  return with_kept_solutions(settings.cache, provenance_of(app), app.log(),
                             [&](SelectionCache& cache) { return plan_model(settings, stop, cache, app); });
}

void check(const Settings& settings) {
  const PlannedModel planned = read_planned_model(settings.first);
  const Plan& plan = planned.plan;
  const Graph& graph = planned.graph;
  Plan again = plan;
  check_program(plan, graph);
  predict(again, graph, CostModel(plan.cluster));
  check_prediction(settings.first, plan, again.prediction);
  fmt::print("{}: {}, {}, fits its model, its program is sound\n", settings.first.string(),
             count_text(plan.devices(), "device"), count_text(std::ssize(plan.stages), "stage"));
}

void explain_plan(const Settings& settings, Log& log) {
  const OutputForm form = output_form(settings.json, settings.csv);
  if (settings.runners_up) {
    if (settings.full || settings.json || settings.csv || !settings.second.empty())
      throw Error(ErrorKind::usage,
                  "--runners-up together with --full, --json, --csv or --why-not: it is a table by itself",
                  "--runners-up alone, or with --profile");
    return ask_runners_up(settings.first, settings.profile, log);
  }
  if (!settings.second.empty()) {
    if (settings.full || settings.csv)
      throw Error(ErrorKind::usage,
                  settings.full ? "--full together with --why-not: the comparison is always whole"
                                : "--csv together with --why-not: the comparison is no single table",
                  settings.full ? "one of the two" : "--json");
    return ask_why_not(settings.first, settings.second, settings.profile, settings.json, log);
  }
  if (!settings.profile.empty())
    throw Error(ErrorKind::usage,
                "--profile without --why-not or --runners-up: what a plan says of itself is explained",
                "alpa-plan simulate PLAN.h5 --profile PROFILE.h5");
  const PlannedModel planned = read_planned_model(settings.first);
  const PlanFacts facts = plan_facts(planned.plan, planned.graph);
  if (form == OutputForm::text) return print_with_legend(explained(facts, settings.first, settings.full));
  const std::string text = form == OutputForm::json ? facts_json(facts).text() + "\n" : stages_csv(facts);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  // Solvers take and give back large tables thousands of times: pages that stay are not cleared each time.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  Settings settings;
  App app("alpa-plan",
          "choose how to split a model over a cluster, and explain it; needs no accelerator and no MPI");
  app.argument("MODEL.toml", settings.model, "model definition")
      .option("--profile", settings.profile, "profile of the machines, written by alpa-profile (HDF5)")
      .option(
          "--cluster", settings.cluster,
          "cluster file (TOML); alone: costs are estimated. With --profile: how many of its machines there "
          "are, without the figures that were measured; or other machines, to which its costs are "
          "extrapolated")
      .option("--pin", settings.pin,
              "pinned plan (TOML) in place of --method, --devices and --micro-batches, and of --schedule, "
              "--overlap, --transfers, --updates, --sync, --sync-order, --owners and --offload where it says "
              "these: stages, meshes and what their axes do; the search's own best is shown beside it")
      .option(
          "--constraints", settings.constraints,
          "what the plan must be like (TOML): largest extent of tensor parallelism, ZeRO level, stages, "
          "layers on one stage, tensors whole or split, how gradients are synchronised, micro-batches and "
          "more (share/constraints.md); their prices are shown. With --pin: of gradients alone")
      .options(settings.planner)
      .option("--data", settings.data, kGraphDataHelp)
      .option("--missing", settings.missing,
              "write the operator signatures that the profile lacks to this file")
      .writes()
      .option(
          "--cache", settings.cache,
          "what was solved before, and will be after (HDF5; made where there is none): planning again, or "
          "after a small change, takes what is the same from there and comes to the same plan")
      .continues()
      .flag("--full", settings.full, kFullHelp)
      .flag(
          "--dry-run", settings.dry_run,
          "check model, profile, cluster and files, and say what is free on the disk; plan and write nothing")
      .option("--out", settings.out, "plan to write (HDF5)")
      .writes()
      .required()
      .may_end_with({ErrorKind::infeasible, ErrorKind::stopped_early})
      .example(
          "alpa-plan configs/models/gpt-1.3b.toml --cluster configs/clusters/p3.16xlarge-8.toml --devices 8 "
          "--out plan.h5",
          "plan for 8 GPUs from a cluster file")
      .example("alpa-plan explain plan.h5", "explain the plan in words")
      .example(
          "alpa-plan configs/models/gpt-1.3b.toml --cluster configs/clusters/p3.16xlarge-8.toml "
          "--constraints "
          "configs/constraints/within-nodes.toml --out plan.h5",
          "the best plan that meets constraints, and what each of them costs");
  app.subcommand("explain", "explain a plan in words")
      .argument("PLAN.h5", settings.first, "plan")
      .flag("--full", settings.full, kFullHelp)
      .flag("--json", settings.json, "print all of it as JSON in place of text")
      .flag("--csv", settings.csv, "print the stages as CSV in place of text, a line for each")
      .option("--why-not", settings.second,
              "another plan of the same model: why it is slower or does not fit, term by term under the same "
              "costs, in place of the explanation")
      .option("--profile", settings.profile,
              "with --why-not or --runners-up: profile to take the costs from; without: the cluster's "
              "numbers")
      .flag("--runners-up", settings.runners_up,
            "the second-best way to synchronise the gradients of each parameter, and what a step takes with "
            "that by the simulator, in place of the explanation")
      .example("alpa-plan explain plan.h5",
               "on one screen: how it is split, what binds, how sure, what to try")
      .example("alpa-plan explain plan.h5 --full | sed -n '/^candidates/,$p'",
               "the other plans that were tried, and why they lost")
      .example("alpa-plan explain plan.h5 --json | jq '.stages[] | {split, memory}'", "for programs")
      .example("alpa-plan explain plan.h5 --why-not zero.h5", "what the other plan loses its time with")
      .example("alpa-plan explain plan.h5 --runners-up",
               "how near another way to synchronise gradients comes, parameter by parameter")
      .runs([&] { explain_plan(settings, app.log()); });
  app.subcommand("report", "write a page of plans to look at, side by side")
      .arguments("PLAN.h5", settings.plans, "plans")
      .option("--profile", settings.profile,
              "profile to take the timeline's costs from; without: the cluster's numbers")
      .option("--out", settings.out, "page to write (HTML; opens without a network)")
      .writes()
      .required()
      .example("alpa-plan report plan.h5 --out plan.html",
               "timeline, memory over time, layouts, every plan that was tried")
      .example("alpa-plan report plan.h5 zero.h5 --out plans.html", "two plans side by side")
      .runs([&] { report_plans(settings.plans, settings.profile, settings.out, app.log()); });
  app.subcommand("what-if", "price a plan again with changed figures of its cluster")
      .argument("PLAN.h5", settings.first, "plan")
      .option("--profile", settings.profile,
              "profile to take the costs from, extrapolated; without: the cluster's numbers")
      .options(settings.what_if)
      .flag("--json", settings.json, "print it as JSON in place of text")
      .example("alpa-plan what-if plan.h5", "what a faster network, more memory or faster devices would do")
      .example("alpa-plan what-if plan.h5 --between-nodes x2 --memory x0.5", "both at once, stage by stage")
      .example("alpa-plan what-if plan.h5 --device H100", "the same plan on other GPUs")
      .runs(
          [&] { ask_what_if(settings.first, settings.profile, settings.what_if, settings.json, app.log()); });
  app.subcommand("sweep", "plan a model for several numbers of devices: how it scales, and what it costs")
      .argument("MODEL.toml", settings.model, "model definition")
      .option("--profile", settings.sweep.profile,
              "profile to take the costs from; those of more or of other machines are extrapolated")
      .option(
          "--cluster", settings.sweep.clusters,
          "cluster file (TOML), with as many of its nodes as the devices take; given several times: those "
          "are compared; without: the machines of --profile")
      .option("--devices", settings.sweep.devices,
              "numbers of devices: the first, doubled up to the last at most; or a list", "N..N|N,N,...")
      .required()
      .option(
          "--price-per-hour", settings.sweep.prices,
          "price of a node per hour, in any currency (whole nodes are paid for); once for each --cluster, in "
          "their order",
          between(1e-6, 1e9))
      .options(settings.sweep)
      .option("--cache", settings.cache, kCacheHelp)
      .continues()
      .option("--out", settings.out, "page to write too (HTML; opens without a network)")
      .writes()
      .flag("--json", settings.json, "print the table as JSON in place of text")
      .may_end_with({ErrorKind::infeasible, ErrorKind::stopped_early})
      .example(
          "alpa-plan sweep configs/models/gpt-39b.toml --cluster configs/clusters/p3.16xlarge-8.toml "
          "--devices 32..1024 --effort quick --out sweep.html",
          "from 32 to 1024 GPUs, with a page")
      .example(
          "alpa-plan sweep model.toml --cluster v100.toml --price-per-hour 24.48 --cluster a100.toml "
          "--price-per-hour 32.77 --devices 8..256 --target-step 10",
          "the cheapest of two clusters on which a step takes 10 s at most")
      .runs([&] {
        return with_kept_solutions(settings.cache, provenance_of(app), app.log(), [&](SelectionCache& cache) {
          settings.sweep.planner.cache = &cache;
          return sweep_devices(settings.model, settings.sweep, settings.out, settings.json, app.log());
        });
      });
  app.subcommand("compare",
                 "what two plans differ in: time, memory, layouts; then a line for each difference")
      .argument("A.h5", settings.first, "plan")
      .argument("B.h5", settings.second, "plan")
      .flag("--json", settings.json, "print it as JSON in place of text")
      .flag("--csv", settings.csv, "print it as CSV in place of text, a line for each figure and layout")
      .exit_statuses({{0, "the same"}, {1, "different"}, {2, "error"}}, 2)
      .example("alpa-plan compare plan.h5 zero.h5", "which of the two, and why")
      .example("alpa-plan compare before.h5 after.h5 > differences.txt && echo the same", "in a script")
      .runs([&] {
        return ask_differences(settings.first, settings.second, output_form(settings.json, settings.csv));
      });
  add_simulate(app, settings.simulate);
  app.subcommand("calibrate", "correct a profile by what a run took")
      .argument("RUN_DIR", settings.run_dir,
                "folder of a run with its timeline: alpa-train --timeline-steps 20")
      .option("--profile", settings.profile, "profile that the run's plan was made with")
      .required()
      .option("--out", settings.out, "corrected profile to write (HDF5)")
      .writes()
      .required()
      .example("alpa-plan calibrate run --profile profile.h5 --out calibrated.h5",
               "what each kind of cost took compared with its prediction, and the step before and after")
      .example("alpa-plan MODEL.toml --profile calibrated.h5 --out plan.h5",
               "plan again with what it learned")
      .runs([&] {
        calibrate_profile(settings.run_dir, settings.profile, settings.out, provenance_of(app), app.log());
      });
  app.subcommand("check", "check a plan file: structure, model, program")
      .argument("PLAN.h5", settings.first, "plan")
      .example("alpa-plan check plan.h5", "before a long job")
      .example("alpa-plan check plan.h5 && sbatch train.sbatch plan.h5", "in a script")
      .runs([&] { check(settings); });
  app.subcommand("solve", "solve a strategy-selection problem from a file")
      .argument(
          "INSTANCE.json", settings.first,
          "instance of the contest on intra-operator parallelism (github.com/google/iopddl), also .json.gz")
      .options(settings.solve)
      .option("--out", settings.out, "strategies to write, a JSON array with one index per node")
      .writes()
      .required()
      .may_end_with({ErrorKind::infeasible, ErrorKind::stopped_early})
      .example("alpa-plan solve instance.json.gz --time-limit 60 --out solution.json",
               "the cheapest choice found within a minute, and how far from the optimum it is at most")
      .example("alpa-plan solve instance.json --time-limit 3600 --out solution.json",
               "an hour; Ctrl-C ends it, with the best choice by then")
      .runs([&] { return solve_instance(settings.first, settings.out, settings.solve, app.log()); });
  return app.run(argc, argv, [&] { return plan_model(settings, app); });
}
