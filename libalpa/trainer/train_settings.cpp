#include "libalpa/trainer/train_settings.h"

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"

namespace alpa {

void describe(TrainSettings& s, OptionsVisitor& visit) {
  visit.field("steps", s.steps, "end after that many steps of the run; 0: as the model file says",
              at_least(0));
  std::vector<Word<std::optional<BatchingPolicy>>> policies{{"planned", std::nullopt, "as the plan says"}};
  for (const Word<BatchingPolicy>& word : batching_policies())
    policies.push_back({word.name, word.value, word.sentence});
  visit.field("batching", s.graphs.policy,
              "which vertices of a model over graphs are computed together, of a group of samples", policies);
  visit.field("accept_changed_data", s.accept_changed_data,
              "go on though the data, its split or the order of samples are not those of the checkpoint");
  visit.field("checkpoint_every", s.checkpoint_every, "steps between checkpoints; 0: at the end only",
              at_least(0));
  visit.field("checkpoints", s.checkpoints, "how those after which training goes on are saved",
              {{"async", CheckpointSaving::asynchronous,
                "written from a copy in host memory while training goes on; where there is no room for the "
                "copy, as sync"},
               {"sync", CheckpointSaving::synchronous, "while training waits"}});
  visit.field("keep", s.keep, "checkpoints to keep; 0: all", at_least(0));
  visit.field("evaluate_every", s.evaluate_every, "steps between evaluations on held-out data; 0: never",
              at_least(0));
  visit.field("evaluation_batches", s.evaluation_batches, "batches of an evaluation", at_least(1));
  visit.field("progress_s", s.progress_s, "seconds between progress lines", at_least(0));
  visit.field("max_hours", s.max_hours,
              "stop with a checkpoint (exit 75) before that many hours have passed; 0: no limit",
              at_least(0));
  visit.field("end_time", s.end_time_s,
              "end of the job in seconds since 1970: stop with a checkpoint before it; 0: not known",
              at_least(0));
  visit.field("timeline_steps", s.timeline_steps,
              "keep what every instruction took in that many steps, every second one from the third on, in "
              "RUN_DIR/timeline, with the plan: for alpa-plan calibrate; 0: none",
              between(0, 1000));
  visit.field("dry_run", s.dry_run,
              "check plan, data, ranks, memory and disk space; train and write nothing");
}

void check_emulated(const TrainSettings& settings) {
  if (settings.resume != "auto" && settings.resume != "never")
    throw Error(ErrorKind::usage,
                "--resume is given, but a run on emulated devices has no states to go on from",
                "leave it out, or train on --device cpu or cuda");
  if (settings.timeline_steps > 0)
    throw Error(ErrorKind::usage,
                "--timeline-steps is given, but emulated computations take their predicted time",
                "leave it out, or train on --device cpu or cuda");
}

void check_overlapping_steps(const TrainSettings& settings) {
  if (settings.timeline_steps > 0)
    throw Error(
        ErrorKind::usage,
        "--timeline-steps is given, but the plan has updates in the next forward, or at servers: a step by "
        "itself, as timelines have it, is none of these",
        "leave it out, or keep the timeline of a plan with --updates after-norm and without --staleness");
}

}  // namespace alpa
