#include "libalpa/trainer/evaluate_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/options.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/kernels/element_types.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/runtime/stoppable_work.h"
#include "libalpa/trainer/evaluated_batches.h"
#include "libalpa/trainer/run_memory.h"
#include "libalpa/trainer/training_data.h"

namespace alpa {
namespace {

bool has_tokens(const Graph& graph) {
  return std::ranges::any_of(graph.inputs,
                             [](const Input& input) { return input.kind == InputKind::tokens; });
}

/// That there is memory for the forward; the states are where training has them, its activations are not.
void check_room(const Program& program, const Graph& graph, const BatchReader& reader,
                const TrainRanks& ranks, Stream& control, Log& log) {
  const Program* const programs[] = {&program};
  TrainSettings nothing_saved;
  nothing_saved.checkpoints = CheckpointSaving::synchronous;
  const std::string shortfall = check_memory(program, graph, rank_memory(graph, programs, reader, reader),
                                             ranks, nothing_saved, control)
                                    .shortfall;
  if (!shortfall.empty() && ranks.control.rank() == 0) log.warning(shortfall);
}

void check_batches(std::int64_t batches, const BatchReader& reader, const EvaluationSettings& settings,
                   const TrainingOptions& options) {
  if (batches > 0) return;
  throw Error(ErrorKind::input,
              fmt::format("a batch takes {}, and '{}' has {}{}", count_text(options.batch, "sample"),
                          settings.data, count_text(reader.order().windows(Split::held_out), "sample"),
                          settings.held_out ? " that training leaves out" : ""),
              "more data, or a plan of the model with a smaller [training] batch, which takes the same "
              "checkpoints");
}

}  // namespace

void describe(EvaluationSettings& s, OptionsVisitor& visit) {
  visit.field("held_out", s.held_out,
              "evaluate on the part of --data alone that training leaves out of it, the last 5 %; where the "
              "run had --evaluation-data, give that as --data instead");
  visit.field("batches", s.batches, "batches at most, from the beginning; 0: all", at_least(0));
  visit.field("progress_s", s.progress_s, "seconds between progress lines", at_least(0));
}

std::optional<double> perplexity(const Graph& graph, double loss) {
  const bool has_other_terms =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->name == "balance_loss"; });
  return has_tokens(graph) && !has_other_terms ? std::optional(std::exp(loss)) : std::nullopt;
}

EvaluationReport evaluate_checkpoint(const Plan& plan, const Graph& graph, const TrainingOptions& options,
                                     const EvaluationSettings& settings, const TrainRanks& ranks,
                                     const StopRequest& stop, Log& log) {
  const std::string warning =
      check_machines(plan, gather_machines(settings.node, ranks.device, ranks.host, ranks.control));
  if (!warning.empty() && ranks.control.rank() == 0) log.warning(warning);
  check_program(plan, graph);
  check_element_types(ranks.device, graph);
  const Program program = lower(graph, plan, Purpose::evaluate, ranks.device.kind());
  verify(program);
  const TrainingData data = open_training_data(
      settings.data, graph, options, settings.held_out ? SampleOrder::usual_held_out : 1, settings.graphs);
  BatchReader& reader = *data.reader;
  const std::unique_ptr<Stream> control = ranks.host.make_stream();
  check_room(program, graph, reader, ranks, *control, log);

  Executor executor(graph, {&program}, ranks.device, ranks.data_plane,
                    static_cast<std::uint64_t>(options.seed));
  ReadAhead samples(ranks.device, executor.samples(), reader);
  EvaluatedBatches batches(graph, executor, 0, samples, reader, options);
  check_batches(batches.all(), reader, settings, options);
  const std::int64_t count = settings.batches > 0 ? std::min(settings.batches, batches.all()) : batches.all();

  EvaluationReport report;
  report.checkpoint = trained_checkpoint(settings.trained, ranks, *control, log);
  report.step = load_trained(report.checkpoint, graph, state_bytes(executor), ranks, *control, log,
                             [&](const BytesRead& read) {
                               return load_states(executor, graph, report.checkpoint, read);
                             })
                    .step;
  log.info(fmt::format("{}: step {} ('{}') on {}, {} of {}", plan.model_name, report.step,
                       report.checkpoint.string(), reader.description(), count_text(count, "batch"),
                       count_text(options.batch, "sample")));
  StoppableWork work("batch", count, settings.progress_s, ranks, stop, log);
  while (!work.is_done() && !work.is_stopped()) {
    batches.add(report.step);
    work.piece_done([&] { return fmt::format("loss {:.4f} so far", batches.mean().loss); });
  }
  report.seconds = work.seconds();
  report.is_stopped = work.is_stopped();
  report.data = settings.data;
  report.held_out = settings.held_out;
  report.means = batches.mean();
  if (!std::isfinite(report.means.loss))
    throw Error(ErrorKind::non_finite,
                fmt::format("the loss of '{}' is {}", report.checkpoint.string(), report.means.loss),
                "an earlier checkpoint; of a model in f16 or bf16, numbers of the data that are less large");
  report.perplexity = perplexity(graph, report.means.loss);
  report.batches = batches.done();
  report.samples = report.batches * options.batch;
  report.tokens = has_tokens(graph) ? report.samples * options.sequence : 0;
  report.left = reader.order().windows(Split::held_out) - report.samples;
  return report;
}

}  // namespace alpa
