#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libalpa/base/batching_policy.h"

namespace alpa {

class OptionsVisitor;

/// How a checkpoint is saved from which training goes on.
enum class CheckpointSaving { asynchronous, synchronous };

/// The settings of a run beside its plan.
struct TrainSettings {
  std::string data;             ///< see open_tokens()
  std::string evaluation_data;  ///< likewise, all held out; "": the end of `data` is
  std::filesystem::path run_dir;
  GraphBatching graphs;                 ///< of a model over graphs
  std::string resume = "auto";          ///< see find_resume_point()
  bool accept_changed_data = false;     ///< resume all the same, see check_same_data()
  std::int64_t steps = 0;               ///< the run ends after that many steps; 0: as the model file says
  std::int64_t checkpoint_every = 100;  ///< steps; 0: only at the end
  CheckpointSaving checkpoints = CheckpointSaving::asynchronous;
  std::int64_t keep = 2;                ///< checkpoints kept; 0: all
  std::int64_t evaluate_every = 0;      ///< steps; 0: never
  std::int64_t evaluation_batches = 4;  ///< at most
  double progress_s = 5;                ///< seconds between progress lines
  double max_hours = 0;                 ///< from the start; 0: no limit
  double end_time_s = 0;                ///< of the job, seconds since 1970; 0: not known
  bool dry_run = false;                 ///< check everything, train nothing, write nothing
  std::filesystem::path trace;          ///< measured timeline of one step (Chrome trace); "": none
  std::int64_t timeline_steps = 0;      ///< kept in the run's folder (measured_steps.h); 0: none
  int node = 0;                         ///< of this rank, among the nodes of the job
  std::string node_name;                ///< likewise, its name
};

/// The one list of the settings that are numbers or flags (libalpa/base/options.h).
void describe(TrainSettings&, OptionsVisitor&);

/// Throws Error(usage) where they ask for what emulated devices have not.
void check_emulated(const TrainSettings&);

/// Likewise of steps that overlap each other (Program::defers_updates).
void check_overlapping_steps(const TrainSettings&);

}  // namespace alpa
