#include "apps/average_weights.h"

#include <fmt/core.h>

#include <cstdint>

#include "libalpa/base/error.h"
#include "libalpa/checkpoint/average_checkpoints.h"
#include "libalpa/checkpoint/run_folder.h"

namespace alpa {
namespace {

void average_weights(const AverageSettings& settings, App& app) {
  for (const std::filesystem::path& path : settings.checkpoints)
    if (std::filesystem::is_directory(path))
      throw Error(ErrorKind::usage, fmt::format("'{}' is a folder, expected checkpoints", path.string()),
                  fmt::format("{}/checkpoints/*.h5, if it is that of a run", path.string()));
  if (settings.checkpoints.size() < 2)
    throw Error(ErrorKind::usage, "one checkpoint is given, which is its own mean", "two or more");
  if (!checkpointed_steps(settings.out).empty())
    throw Error(ErrorKind::usage,
                fmt::format("--out '{}' has checkpoints, which a run would go on from or pass over",
                            settings.out.string()),
                "another --out");
  std::size_t newest = 0;
  std::int64_t step = -1;
  for (std::size_t i = 0; i < settings.checkpoints.size(); ++i) {
    const std::int64_t its_step = checkpoint_facts(settings.checkpoints[i]).step;
    if (its_step <= step) continue;
    newest = i;
    step = its_step;
  }
  average_checkpoints(settings.checkpoints, newest, checkpoint_path(settings.out, step),
                      provenance_here(app.command_line(), "alpa-train", read_environment().job_id),
                      app.log());
}

}  // namespace

void add_average(App& app, AverageSettings& settings) {
  app.subcommand("average", "make a checkpoint of the mean of the weights of several of one model")
      .arguments(
          "CHECKPOINT", settings.checkpoints,
          "checkpoints of one model, two or more; the optimizer's moments, the step and the place in the "
          "data are those of the one with the highest step")
      .option(
          "--out", settings.out,
          "folder that gets the mean as checkpoints/step-N.h5, as the folder of a run has them; made where "
          "it is missing")
      .continues()
      .required()
      .example("alpa-train average run/checkpoints/*.h5 --out average", "all that a run has kept (--keep)")
      .example("alpa-train evaluate plan.h5 --data held-out.h5 --run-dir average",
               "what that is worth; --resume average goes on from it")
      .runs([&] { average_weights(settings, app); });
}

}  // namespace alpa
