#include "apps/simulate_plan.h"

#include <cstdio>

#include "apps/models.h"
#include "apps/output_form.h"
#include "apps/plan_costs.h"
#include "libalpa/base/error.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/planner/predict.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/trace.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/text.h"
#include "libalpa/report/simulated_step.h"

namespace alpa {
namespace {

void simulate_plan(const SimulateSettings& settings, Log& log) {
  const OutputForm form = output_form(settings.json, settings.csv);
  if (settings.program && form != OutputForm::text)
    throw Error(ErrorKind::usage, "--program together with --json or --csv: the program is text",
                "one of the two");
  const PlannedModel planned = read_planned_model(settings.plan);
  const Plan& plan = planned.plan;
  const Graph& graph = planned.graph;
  const auto [costs, remark, warning] = costs_of(plan, settings.profile);
  if (!warning.empty()) log.warning(warning);
  if (!settings.trace.empty()) AtomicFile{settings.trace};
  check_program(plan, graph);
  const Program program = lower(graph, plan);
  verify(program);
  if (settings.program) std::fputs(program_text(program, graph).c_str(), stdout);
  const Timeline timeline = simulate(program, costs);
  const SimulatedStep step =
      simulated_step(plan, program, timeline, costs, sureness(plan, graph, costs, timeline.step_s).error_s);
  if (form == OutputForm::text)
    print_with_legend(simulation_text(step, remark));
  else
    std::fputs(
        (form == OutputForm::json ? simulation_json(step).text() + "\n" : simulation_csv(step)).c_str(),
        stdout);
  if (!settings.trace.empty())
    publish_text(settings.trace,
                 chrome_trace(TimelineKind::planned, simulated_ranks(program, costs, traced_ranks(program)),
                              program, graph));
}

}  // namespace

void add_simulate(App& app, SimulateSettings& settings) {
  app.subcommand("simulate", "play a plan's program with the costs of its cluster or of a profile")
      .argument("PLAN.h5", settings.plan, "plan")
      .option("--profile", settings.profile, "profile to take the costs from; without: the cluster's numbers")
      .flag("--program", settings.program,
            "print the program first: buffers, instructions and schedule of each mesh")
      .flag("--json", settings.json, "print it as JSON in place of text")
      .flag("--csv", settings.csv, "print it as CSV in place of text, a line for each mesh")
      .option(
          "--trace", settings.trace,
          "write the timeline as a Chrome trace (JSON): a row for each rank and lane, idle time, live memory")
      .writes()
      .example("alpa-plan simulate plan.h5 --profile profile.h5",
               "the step as predicted from the profile that the plan was made from")
      .example("alpa-plan simulate plan.h5 --trace planned.json",
               "its timeline from the cluster's numbers, for chrome://tracing or Perfetto")
      .runs([&app, &settings] { simulate_plan(settings, app.log()); });
}

}  // namespace alpa
