#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/checkpoint/checkpoint.h"

// The folder of a run, RUN_DIR:
//     checkpoints/step-00000100.h5   one per saved step
//     metrics.jsonl                  one line per step
//     emulated.jsonl                 likewise, of a run on emulated devices, which makes no checkpoints
//     timeline/steps.h5              what every instruction took in some steps, where that was asked for
//     timeline/plan.h5               and the plan that they are of (program/order/measured_steps.h)
//     STOP, SAVE                     made by people who want the run to stop, or to save now
//     lock                           there while a run trains into it (run_folder_lock.h)

namespace alpa {

std::filesystem::path checkpoint_path(const std::filesystem::path& run_dir, std::int64_t step);

/// Steps of which there are checkpoints, ascending by number. Files of other names are not looked at.
std::vector<std::int64_t> checkpointed_steps(const std::filesystem::path& run_dir);

struct FoundCheckpoint {
  std::filesystem::path path;
  CheckpointFacts facts;
};

/// Reads all of a checkpoint. Throws Error(input) where it is damaged or none, or of another step than its
/// name says.
FoundCheckpoint verified_checkpoint(const std::filesystem::path&, const BytesRead& read = {});

/// The checkpoint of the highest step that verifies; each damaged one before it is a warning. nullopt where
/// there is none at all; throws Error(input) where there are some and none verifies, since a fresh start
/// would hide it.
std::optional<FoundCheckpoint> newest_checkpoint(const std::filesystem::path& run_dir, Log& log,
                                                 const BytesRead& read = {});

/// What `--resume` means for a run folder; nullopt is a fresh start. Logs which of them it is.
///   auto    the newest checkpoint, or a fresh start where there is none
///   must    the newest checkpoint; Error(input) where there is none
///   never   a fresh start
///   PATH    this checkpoint, or the newest of this run folder; Error(input) where there is none or it is
///   damaged
std::optional<FoundCheckpoint> find_resume_point(const std::string& resume,
                                                 const std::filesystem::path& run_dir, Log& log,
                                                 const BytesRead& read = {});

/// Makes the folder ready for a run that goes on after `step` steps; for one rank, before the first save.
/// Removes what killed writers left, and moves checkpoints of later steps, which the run is about to make
/// otherwise, to checkpoints/set-aside-1 (or -2, ...). Throws Error(input) where the folder is not writable.
void prepare_run_folder(const std::filesystem::path& run_dir, std::int64_t step, Log& log);

/// That the folder is of no run that was trained, which one on emulated devices could be mistaken for. Throws
/// Error(usage).
void check_untrained(const std::filesystem::path& run_dir);

/// Deletes all checkpoints before step `newest` but the last `keep` - 1 of them; for one rank, after saving
/// `newest`. Keeps everything where that cannot be opened or is of another step. It is not read again: saving
/// has failed unless each rank brought to disk what it wrote, and reading it now would show the memory of the
/// system and not the disk. Later steps and other files stay. keep = 0 keeps all.
void keep_last(const std::filesystem::path& run_dir, std::int64_t newest, std::int64_t keep, Log& log);

}  // namespace alpa
