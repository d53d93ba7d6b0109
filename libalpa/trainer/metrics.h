#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/json.h"
#include "libalpa/trainer/step_reference.h"

namespace alpa {

/// A metric of the model, as it is reported: a mean per target, or a sum.
struct NamedNumber {
  std::string name;
  double value = 0;
};

/// What is reported of held-out data.
struct Evaluation {
  double loss = 0;  ///< mean per target
  std::vector<NamedNumber> of_model;
};

/// A checkpoint of a run, once it has its name.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::int64_t bytes = 0;  ///< of its file; 0 where somebody has removed it since
  double seconds = 0;  ///< from the beginning of the save on; of an asynchronous one, until ranks saw it done

  /// "1.20 GiB in 3.40 s, 378.96 MB/s"
  std::string text() const;
};

/// What is reported of one training step, over all ranks.
struct StepMetrics {
  std::int64_t step =
      0;  ///< steps done after it, so the first is 1 and the checkpoint of step n holds lines 1 to n
  bool first_of_job = false;  ///< of what one start of alpa-train has trained
  bool emulated = false;      ///< nothing was computed: what is only known of computed numbers is left out
  double loss = 0;            ///< mean per target
  double gradient_norm = 0;
  double learning_rate = 0;
  std::optional<double> loss_scale;  ///< of the step, in f16
  std::int64_t skipped_steps = 0;    ///< so far, in f16: their gradients overflowed
  std::int64_t corrected_steps = 0;  ///< of this run: their updates were made again (UpdateOrder)
  std::optional<double> lead;        ///< steps by which the fastest rank was ahead of all, at most
  std::int64_t samples = 0;          ///< of the step
  std::int64_t tokens = 0;           ///< of the step; 0 where samples are no tokens
  double step_s = 0;                 ///< duration
  double correction_s = 0;           ///< of that for updates that were made again
  StepReference reference;
  std::int64_t memory_bytes = 0;          ///< the most that one rank takes
  std::int64_t process_bytes = 0;         ///< of rank 0, as the system counts it (host memory); 0: not known
  std::uint64_t samples_hash = 0;         ///< SampleOrder::samples_hash() of the batch
  double data_s = 0;                      ///< spent waiting for data
  std::optional<double> checkpoint_s;     ///< that training stood still for saves since the step before
  std::optional<SavedCheckpoint> saved;   ///< since the step before
  std::span<const NamedNumber> of_model;  ///< until the next step
  std::optional<Evaluation> evaluation;   ///< where one followed the step
};

/// What was trained since the last line for people.
struct StepTotals {
  std::int64_t samples = 0, tokens = 0;
  double flops = 0, seconds = 0;

  void add(const StepMetrics&);
};

/// Part of the peak that the model's FLOPs reach ("model FLOPs utilization"), in [0, 1]; nullopt where the
/// peak is unknown.
std::optional<double> peak_fraction(const StepMetrics&);

/// Sets the members of the step's line; `step` comes first. What is unknown is null.
JsonObject& set_metrics(JsonObject& line, const StepMetrics&);

JsonObject numbers_json(std::span<const NamedNumber>);

/// "  accuracy 0.9712  dropped 12"
std::string numbers_text(std::span<const NamedNumber>);

/// The step as one line for people, its rates those of all steps since the last line; `eta_s` is what
/// remains, in seconds: "step 120/1000  loss 2.3456  gradient norm 0.812  12.3 ktokens/s  45.6 GFLOP/s (38 %
/// of the measured peak) memory 1.20 GiB  left 12m05s" (one line).
std::string progress_line(const StepMetrics&, const StepTotals& since, std::int64_t total_steps,
                          double eta_s);

/// The metrics of a run, one line of JSON per step, steps ascending and unique, across resumptions too. For
/// one rank.
class MetricsFile {
 public:
  /// Opens the file for a run that goes on after `steps_done` steps. Lines of later steps, and a last line
  /// that is incomplete, are moved to the end of another beside it, NAME.set-aside.jsonl. Throws Error(input)
  /// where it cannot be written.
  MetricsFile(std::filesystem::path path, std::int64_t steps_done);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// Appends; lines have their memory in common. Throws Error(run_time), e.g. where the disk is full.
  void add(const StepMetrics&);

  /// Brings all lines to disk; before a checkpoint that counts on them.
  void sync();

  /// Writes all lines again where the file was removed, and says whether it was. Throws Error(run_time).
  bool restore_if_removed();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  JsonObject object_;
  std::string line_;
};

}  // namespace alpa
