#include "apps/evaluate_model.h"

#include <fmt/core.h>

#include "apps/job_ranks.h"
#include "apps/models.h"
#include "libalpa/base/error.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

int evaluate_model(EvaluateSettings settings, const ParallelRun& rank) {
  check_trained_source(settings.evaluation.trained);
  const PlannedModel planned = read_planned_model(settings.plan);
  if (!planned.model.graphs.empty()) settings.evaluation.graphs = planned.model.graphs[0].batching;
  settings.evaluation.node = rank.session.node();
  const JobRanks job(settings.device, rank, nullptr, settings.file_timeout_s);
  const EvaluationReport report = evaluate_checkpoint(planned.plan, planned.graph, planned.model.training,
                                                      settings.evaluation, job.ranks(), rank.stop, rank.log);
  if (rank.session.rank() == 0) {
    fmt::print("{}", evaluation_text(report));
    if (!settings.json.empty()) publish_text(settings.json, evaluation_json(report));
  }
  if (!report.is_stopped) return 0;
  rank.log.info("stopped by a signal: these are the numbers of the batches that were done by then");
  return static_cast<int>(ErrorKind::stopped_early);
}

}  // namespace

void describe(EvaluateSettings& s, OptionsVisitor& visit) {
  describe(s.evaluation, visit);
  describe_file_timeout(s.file_timeout_s, visit);
  describe(s.device, visit);
}

void add_evaluate(App& app, EvaluateSettings& settings) {
  EvaluationSettings& evaluation = settings.evaluation;
  Command& command =
      app.parallel_subcommand(
             "evaluate", "run the forward of a trained model on data: loss, perplexity of tokens, metrics",
             [&settings](const ParallelRun& rank) { return evaluate_model(settings, rank); })
          .argument(
              "PLAN.h5", settings.plan,
              "plan of the model for the ranks of this job, not necessarily the one that it was trained by")
          .option("--data", evaluation.data,
                  "what to evaluate on, as alpa-train takes it: all of it, in whole batches of the plan")
          .reads([&evaluation] { return data_files(evaluation.data); })
          .required();
  add_trained_source(command, evaluation.trained);
  command.option("--json", settings.json, "also write what is printed to this file, as JSON")
      .writes()
      .options(settings)
      .may_end_with({ErrorKind::non_finite, ErrorKind::stopped_early})
      .example("alpa-train evaluate plan.h5 --data digits-held-out.h5 --run-dir run",
               "the newest checkpoint of a run on data that it was not trained on")
      .example(
          "mpiexec -n 4 alpa-train evaluate plan.h5 --data text.txt --held-out --run-dir run "
          "--json evaluation.json",
          "on the 5 % of the training data that training left out, on 4 CPU ranks")
      .example(
          "srun --mpi=pmi2 alpa-train evaluate plan-2.h5 --data tokens.bin --checkpoint "
          "average/checkpoints/step-00000100.h5",
          "one checkpoint, under a plan for the 2 ranks of this job");
}

}  // namespace alpa
