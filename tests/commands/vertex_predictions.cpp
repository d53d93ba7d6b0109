#include "tests/commands/vertex_predictions.h"

#include "libalpa/plan/plan_file.h"
#include "tests/commands/timed_runs.h"

namespace alpa {
namespace {

struct PredictedModel {
  const char *name, *data;
  int children, vertices, batch;
};

struct PredictedWay {
  const char* policy;
  int part;  ///< of the batch
  int ranks;
};

VertexPrediction prediction(const PredictedModel& model, const PredictedWay& way, int rounds) {
  const TimedRuns runs;
  const std::string file = runs.written(
      "model.toml",
      fmt::format("base = \"{}/configs/models/{}.toml\"\nname = \"graphs\"\n[graphs]\nvocabulary = "
                  "\"vocabulary\"\nclasses = \"classes\"\nchildren = {}\nvertices = {}\nbatching = \"{}\"\n"
                  "[training]\nbatch = {}\n",
                  ALPA_SOURCE_DIR, model.name, model.children, model.vertices, way.policy,
                  model.batch / way.part));
  const std::string profile = runs.path("profile.h5"), plan = runs.path("plan.h5");
  const Hosts on{way.ranks};
  runs.run(on, fmt::format("alpa-profile {} --threads 1 --data {} --out {}", file, model.data, profile));
  runs.run(fmt::format("alpa-plan {} --profile {} --data {} --out {}", file, profile, model.data, plan));
  const Plan read = read_plan(plan);
  VertexPrediction made{fmt::format("{}, {}, batch {}, {} rank{}", model.name, way.policy,
                                    model.batch / way.part, way.ranks, way.ranks == 1 ? "" : "s"),
                        read.prediction.step_s, 0, true};
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const std::string run = runs.path(fmt::format("run{}", round));
    runs.run(on, fmt::format("alpa-train {} --data {} --threads 1 --steps 30 --evaluate-every 0 --run-dir {}",
                             plan, model.data, run));
    const auto [step_s, bytes] = TimedRuns::steps(run + "/metrics.jsonl");
    seconds.push_back(step_s);
    for (const MeshPrediction& mesh : read.prediction.meshes)
      made.has_its_arena = made.has_its_arena && mesh.memory.total == bytes;
  }
  made.measured_s = *std::min_element(seconds.begin(), seconds.end());
  return made;
}

}  // namespace

std::vector<VertexPrediction> vertex_predictions(int rounds) {
  std::vector<VertexPrediction> all;
  for (const PredictedModel& model : {PredictedModel{"tree-lstm", "synthetic-trees", 2, 56, 256},
                                      {"var-lstm", "chains", 1, 44, 256},
                                      {"tree-fc", "complete-trees:128:200", 2, 255, 20}})
    for (const PredictedWay& way :
         {PredictedWay{"frontier", 1, 1}, {"frontier", 1, 2}, {"frontier", 2, 1}, {"per-sample", 1, 1}}) {
      if (model.batch / way.part < 2 * way.ranks * 5) continue;
      const VertexPrediction& made = all.emplace_back(prediction(model, way, rounds));
      fmt::print("  {:<44} predicted {:>7.2f} ms, measured {:>7.2f} ms, ratio {:.2f}{}\n", made.what,
                 1e3 * made.predicted_s, 1e3 * made.measured_s, made.predicted_s / made.measured_s,
                 made.has_its_arena ? "" : ", ANOTHER ARENA");
      std::fflush(stdout);
    }
  return all;
}

}  // namespace alpa
