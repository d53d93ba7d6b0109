#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "libalpa/base/log.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/trainer/metrics.h"
#include "libalpa/trainer/train_settings.h"

namespace alpa {

/// The checkpoint to go on from, which one rank looks for and reads through for all; "": none.
std::filesystem::path agreed_resume_point(const TrainSettings&, const TrainRanks&, Stream& control, Log&);

/// The checkpoints that a run saves into its folder, one at a time. Calls that save are collective.
class RunCheckpoints {
 public:
  /// Keeps references. Asynchronous saves are of a copy of the states in host memory (checkpoint_shares()),
  /// which a thread writes while training goes on.
  RunCheckpoints(const TrainSettings&, CheckpointSaving, const Graph&, Executor&, const TrainRanks&,
                 Stream& control, const Provenance&, Log&);

  /// Saves the states as they are, once the checkpoint before has its name. `at_once`, or where there is no
  /// copy, the checkpoint has its name on return. Else it is pending until it is published.
  void save(const CheckpointFacts&, bool at_once);

  /// Whether this rank still writes its share of the pending one.
  bool is_writing() const { return pending_ && !pending_->is_written(); }

  /// Waits until all ranks have written the pending one, if there is one, gives it its name, and removes
  /// earlier ones that are not to be kept. Where its file was removed meanwhile it is dropped, with a
  /// warning. Throws what went wrong in writing it. The run has done `step` steps by now.
  void publish(std::int64_t step);

  /// From the beginning of the last save until it had its name, or until now where the pending one has taken
  /// longer; before the first a guess.
  double save_s() const;
  /// Of the last save, for the end of a line: "  saved 1.20 GiB in 3.40 s, 378.96 MB/s", "  copied in 0.80
  /// s".
  std::string saved_text() const;
  /// Sets what there is to say of saves since the step before: checkpoint_s and saved.
  void report(StepMetrics&);

 private:
  class StandStill;
  void finish();

  const TrainSettings& settings_;
  const CheckpointSaving saving_;
  const Graph& graph_;
  Executor& executor_;
  const TrainRanks& ranks_;
  Stream& control_;
  const Provenance& provenance_;
  Log& log_;
  std::unique_ptr<TensorWriter> pending_;
  std::int64_t step_ = 0;  ///< of the last save, or of the pending one
  double begun_s_ = 0, copied_s_ = 0;
  SavedCheckpoint saved_{0, 0, 1};  ///< before the first a guess; its bytes are known to rank 0
  std::optional<double> stood_still_s_;
  std::optional<SavedCheckpoint> unreported_;
};

}  // namespace alpa
