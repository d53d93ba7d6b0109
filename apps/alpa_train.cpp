#include <fmt/core.h>

#include "apps/app.h"
#include "apps/average_weights.h"
#include "apps/evaluate_model.h"
#include "apps/job_ranks.h"
#include "apps/models.h"
#include "apps/plan_costs.h"
#include "apps/report_run.h"
#include "apps/sample_model.h"
#include "apps/tune_plan.h"
#include "apps/verify_checkpoints.h"
#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/checkpoint/exchange_weights.h"
#include "libalpa/dataset/convert.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/program/order/trace.h"
#include "libalpa/trainer/train.h"
#include "libalpa/weights/safetensors_shards.h"
#include "libalpa/weights/weight_names.h"

namespace {

using namespace alpa;

struct Settings {
  std::filesystem::path plan, profile, model, weights, checkpoint, out;
  std::string names;
  bool allow_non_finite = false;
  TrainSettings train;
  ConvertSettings convert;
  TuneSettings tune;
  RunReport report;
  EvaluateSettings evaluate;
  SampleSettings sample;
  std::vector<std::filesystem::path> verified;
  AverageSettings average;
  DeviceSettings device;
  double file_timeout_s = 1800;
};

void describe(Settings& s, OptionsVisitor& visit) {
  describe(s.train, visit);
  describe_file_timeout(s.file_timeout_s, visit);
  describe(s.device, visit);
}

int train_rank(Settings settings, const ParallelRun& rank, const std::string& command_line) {
  const PlannedModel planned = read_planned_model(settings.plan);
  if (!planned.model.graphs.empty()) {
    GraphBatching batching = planned.model.graphs[0].batching;
    if (settings.train.graphs.policy) batching.policy = settings.train.graphs.policy;
    settings.train.graphs = batching;
  } else if (settings.train.graphs.policy) {
    throw Error(ErrorKind::usage,
                fmt::format("--batching is given, and '{}' is not a model over graphs", planned.model.name),
                "leave it out: it says which vertices of a graph are computed together");
  }
  if (settings.train.end_time_s <= 0) settings.train.end_time_s = rank.environment.job_end_time_s;
  settings.train.node = rank.session.node();
  settings.train.node_name = rank.environment.node_name;
  const bool emulated = settings.device.device == DeviceKind::emulated;
  if (!emulated && !settings.profile.empty())
    throw Error(ErrorKind::usage, "--profile is given, and is for --device emulated alone",
                "leave it out, or add --device emulated, which computes nothing and takes the time that a "
                "profile has");
  const PlanCosts emulation = costs_of(planned.plan, settings.profile);
  const JobRanks job(settings.device, rank, &planned.plan.cluster, settings.file_timeout_s);
  const TrainRanks ranks = job.ranks(emulated ? &emulation.costs : nullptr);
  return train(planned.plan, planned.graph, planned.model.training, settings.train, ranks, rank.stop,
               provenance_here(command_line, "alpa-train", rank.environment.job_id, options_line(settings)),
               rank.log);
}

void import_file(const Settings& settings, App& app) {
  AtomicFile{settings.out};  // a folder that cannot be written is noticed before the reading
  const ModelDefinition model = load_model(settings.model);
  import_weights(settings.weights, training_step_graph(model, model.training.group_samples), model.training,
                 settings.out, settings.allow_non_finite ? NonFinite::taken : NonFinite::refused,
                 provenance_here(app.command_line(), "alpa-train", read_environment().job_id), app.log());
}

/// "gpt2|llama|bert"
std::string family_names() {
  std::string names;
  for (const WeightFamily& family : weight_families())
    names += (names.empty() ? "" : "|") + std::string(family.name);
  return names;
}

void add_convert(App& app, ConvertSettings& settings) {
  app.subcommand("convert",
                 "make the HDF5 file that --data takes from text, tokens, labelled samples or trees")
      .arguments("SOURCE", settings.sources,
                 "file or folder, see --from; .gz is uncompressed. Of texts there may be several")
      .reads([&settings] { return files_read(settings); })
      .option("--out", settings.out, "file to write (HDF5)")
      .writes()
      .required()
      .option(
          "--tokenizer", settings.tokenizer,
          "what makes tokens of texts: bytes, a tokenizer.json (byte-level BPE, as that of GPT-2, Llama 3 or "
          "Qwen), a model of SentencePiece, or a file that was converted with one. Where it is not given, "
          "bytes. Of token files: what made them. --out carries it",
          "FILE|bytes")
      .option("--labels", settings.labels,
              "IDX file of the labels; where it is not given, beside the images: labels-idx1 for images-idx3")
      .option("--words", settings.words,
              "converted treebank whose vocabulary is taken; words that it does not have become its first, "
              "<unk>. Where it is not given, the words of SOURCE, the most frequent first behind <unk>")
      .options(settings)
      .option("--hold-out-file", settings.hold_out_file,
              "that file; where it is not given, --out with -held-out before its ending")
      .writes([&settings] {
        return settings.hold_out > 0 ? std::vector{hold_out_file(settings)}
                                     : std::vector<std::filesystem::path>{};
      })
      .example(
          "alpa-train convert corpus/ more.jsonl.gz --tokenizer tokenizer.json --hold-out 0.01 --out "
          "corpus.h5",
          "all texts and JSON lines, the end of a text behind each document; corpus.h5 has the tokenizer in "
          "it")
      .example("alpa-train convert digits.csv.gz --shape 8x8x1 --divide 16 --hold-out 0.2 --out digits.h5",
               "1797 images of 8 x 8 pixels from 0 to 16, a fifth of them in digits-held-out.h5")
      .example("alpa-train convert train-images-idx3-ubyte.gz --out mnist.h5",
               "bytes of 28 x 28 x 1; the labels are beside, train-labels-idx1-ubyte.gz")
      .example("alpa-train convert pets/ --shape 224x224x3 --out pets.h5",
               "the images of each subfolder, a class, scaled and cut to 224 x 224 pixels of 3 channels")
      .example("alpa-train convert dev.txt --from ptb-trees --words trees.h5 --out dev.h5",
               "labelled trees, with the words of those in trees.h5")
      .runs([&] {
        convert(settings,
                provenance_here(app.command_line(), "alpa-train", read_environment().job_id,
                                options_line(settings)),
                app.log());
      });
}

void add_tune(App& app, TuneSettings& settings) {
  settings.device.may_emulate = true;
  app.parallel_subcommand(
         "tune", "try out how the gradients of a plan are synchronised, and keep the fastest",
         [&app, &settings](const ParallelRun& rank) {
           return tune_plan(settings, rank,
                            provenance_here(app.command_line(), "alpa-train", rank.environment.job_id,
                                            options_line(settings)));
         })
      .argument("PLAN.h5", settings.plan, "plan written by alpa-plan")
      .option("--data", settings.trial.data, "what trials run on, as alpa-train takes it")
      .reads([&settings] { return data_files(settings.trial.data); })
      .required()
      .option("--profile", settings.profile,
              "profile of the machines, for the simulator; without: the cluster's numbers")
      .option("--transfer-from", settings.transfer_from,
              "tuned plan of the same model or one like it: what was fast there is tried first, and its "
              "trials teach the ranking")
      .option("--out", settings.out,
              "plan to write (HDF5), the fastest so far after each trial, with all trials in it; where it "
              "exists, the search goes on from it. A file STOP beside it ends the search (exit 75)")
      .continues()
      .required()
      .options(settings)
      .may_end_with({ErrorKind::infeasible, ErrorKind::non_finite, ErrorKind::stopped_early})
      .example("mpiexec -n 4 alpa-train tune plan.h5 --data text.txt --profile profile.h5 --out tuned.h5",
               "60 trials on 4 CPU ranks; tuned.h5 is a plan to train by")
      .example(
          "mpiexec -n 4 alpa-train tune large.h5 --data text.txt --transfer-from tuned.h5 --trials 15 "
          "--out large-tuned.h5",
          "with what was learned of a smaller model");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  settings.device.may_emulate = true;
  TrainSettings& train = settings.train;
  App app("alpa-train", "train a model exactly as a plan says, on the ranks of an MPI job");
  app.argument("PLAN.h5", settings.plan, "plan written by alpa-plan; it holds the model")
      .option(
          "--data", train.data,
          "text file (its bytes are tokens), llm.c or Megatron token file, HDF5 file with /tokens, a mix of "
          "such (MIX.toml), or "
          "tokens that are drawn: synthetic:VOCABULARY or synthetic:VOCABULARY:LENGTH. For a model with "
          "inputs "
          "of its own: HDF5 file with a dataset for each, or synthetic or synthetic:SAMPLES")
      .reads([&train] { return data_files(train.data); })
      .required()
      .option(
          "--evaluation-data", train.evaluation_data,
          "data that evaluations take, all of it held out, e.g. what convert --hold-out made; the same when "
          "a run goes on. Where it is not given, the last 5 % of --data are held out")
      .reads([&train] { return data_files(train.evaluation_data); })
      .option("--run-dir", train.run_dir,
              "folder for checkpoints and metrics; made where it is missing. A file STOP in it ends the run "
              "with a "
              "checkpoint (exit 75) for as long as it is there, a file SAVE asks for a checkpoint now")
      .continues([&train] {
        return std::vector{train.run_dir, train.run_dir / "metrics.jsonl"};
      })
      .required()
      .option("--resume", train.resume,
              "what to go on from: the newest checkpoint of the run folder, if any (auto) or necessarily "
              "(must), nothing (never), or a checkpoint file or run folder",
              "auto|must|never|PATH")
      .reads([&train] {
        std::error_code ignored;
        return std::filesystem::is_regular_file(train.resume, ignored)
                   ? std::vector<std::filesystem::path>{train.resume}
                   : std::vector<std::filesystem::path>{};
      })
      .option("--trace", train.trace, "write the measured timeline of one step as a Chrome trace (JSON)")
      .renews([](const std::filesystem::path& file) {
        return is_chrome_trace(TimelineKind::measured, file) || is_chrome_trace(TimelineKind::emulated, file);
      })
      .option("--profile", settings.profile,
              "with --device emulated: profile whose measurements say how long computations take")
      .options(settings)
      .may_end_with({ErrorKind::non_finite, ErrorKind::stopped_early})
      .example("mpiexec -n 4 alpa-train plan.h5 --data text.txt --run-dir run",
               "train on 4 CPU ranks of this machine")
      .example(
          "srun --mpi=pmi2 --kill-on-bad-exit=1 alpa-train plan.h5 --data tokens.bin --run-dir run --device "
          "cuda",
          "train on the GPUs of a job")
      .example(
          "mpiexec -n 8 alpa-train plan.h5 --data synthetic:50257 --run-dir rehearsal --device emulated "
          "--steps 20",
          "how a plan for 8 GPUs runs on the network of this job, without GPUs");
  app.subcommand("import", "make a checkpoint of step 0 from safetensors files")
      .argument("WEIGHTS.safetensors", settings.weights,
                "weights with the names of GPT-2, Llama or BERT (masked language model), as transformers "
                "writes them; of a model in several files the index, model.safetensors.index.json, "
                "beside them")
      .reads([&] { return safetensors_files(settings.weights); })
      .argument("MODEL.toml", settings.model, "model of the same dimensions")
      .option("--out", settings.out, "checkpoint to write (HDF5), for --resume")
      .writes()
      .required()
      .flag("--allow-non-finite", settings.allow_non_finite, "take weights that are NaN or infinite")
      .example("alpa-train import model.safetensors configs/models/gpt2-124m.toml --out gpt2.h5",
               "import GPT-2 small")
      .example("alpa-train import model.safetensors.index.json configs/models/llama-8b.toml --out llama.h5",
               "Llama 3 8B, which is published in four files")
      .example("alpa-train plan.h5 --data text.txt --run-dir run --resume gpt2.h5",
               "continue training from it, with a plan of the same model")
      .runs([&] { import_file(settings, app); });
  app.subcommand("export", "write the weights of a checkpoint as a safetensors file")
      .argument("CHECKPOINT.h5", settings.checkpoint, "checkpoint of a run, or of import")
      .option("--names", settings.names,
              "family whose names and layouts the tensors get; own: the names of the model, whichever it is",
              family_names())
      .required()
      .option("--out", settings.out, "file to write (safetensors)")
      .writes()
      .required()
      .example("alpa-train export run/checkpoints/step-00000100.h5 --names gpt2 --out model.safetensors",
               "for programs that read GPT-2's weights")
      .example("alpa-train export gpt2.h5 --names gpt2 --out same.safetensors",
               "a checkpoint of import gives back its tensors, byte for byte")
      .runs([&] { export_weights(settings.checkpoint, settings.names, settings.out, app.log()); });
  add_report(app, settings.report);
  add_convert(app, settings.convert);
  add_tune(app, settings.tune);
  add_evaluate(app, settings.evaluate);
  add_sample(app, settings.sample);
  add_verify(app, settings.verified);
  add_average(app, settings.average);
  return app.run_parallel(
      argc, argv, [&](const ParallelRun& rank) { return train_rank(settings, rank, app.command_line()); });
}
