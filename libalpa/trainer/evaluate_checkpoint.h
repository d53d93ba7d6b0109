#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libalpa/base/batching_policy.h"
#include "libalpa/base/log.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/plan/plan.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/trainer/metrics.h"

namespace alpa {

class OptionsVisitor;

/// What is evaluated, and on what.
struct EvaluationSettings {
  TrainedSource trained = {};
  std::string data;          ///< see open_training_data()
  bool held_out = false;     ///< of the data what training leaves out; else all
  GraphBatching graphs;      ///< of a model over graphs
  std::int64_t batches = 0;  ///< at most; 0: all
  double progress_s = 5;     ///< seconds between progress lines
  int node = 0;              ///< of this rank, among the nodes of the job
};
void describe(EvaluationSettings&, OptionsVisitor&);

struct EvaluationReport {
  std::filesystem::path checkpoint;
  std::int64_t step = 0;  ///< of the checkpoint
  std::string data;       ///< as the settings have it
  bool held_out = false;  ///< only the end of the data
  Evaluation means;
  std::optional<double> perplexity;                   ///< see perplexity()
  std::int64_t batches = 0, samples = 0, tokens = 0;  ///< tokens: 0 where samples are none
  std::int64_t left = 0;    ///< samples of the data, or of its end, that were not taken
  double seconds = 0;       ///< of the batches alone
  bool is_stopped = false;  ///< by a signal, before all batches
};

/// exp(loss): as surely as the model foretells each token it would guess among so many. nullopt where samples
/// are no tokens, or where the loss has a term beside that of the tokens (balance_loss).
std::optional<double> perplexity(const Graph&, double loss);

/// Gives the states of a checkpoint to the ranks of a plan, whatever plan it was trained under, and runs the
/// forward alone. What is evaluated in training is the same to the bits under the same plan. Collective over
/// all ranks. Throws what train() throws of plan and machines; Error(input) for data and checkpoint;
/// Error(non_finite) where the loss is.
EvaluationReport evaluate_checkpoint(const Plan&, const Graph&, const TrainingOptions&,
                                     const EvaluationSettings&, const TrainRanks&, const StopRequest&, Log&);

/// For people, a line for each number.
std::string evaluation_text(const EvaluationReport&);
std::string evaluation_json(const EvaluationReport&);

}  // namespace alpa
