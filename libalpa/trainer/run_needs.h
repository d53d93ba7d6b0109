#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/program/program.h"
#include "libalpa/trainer/train_settings.h"

// What a run will take of its machines, worked out before it starts.

namespace alpa {

/// What the process of a rank takes of its node's memory at most, in bytes, beside what it has when a run
/// starts.
struct ProcessMemory {
  std::int64_t arena = 0;     ///< the largest of a rank; 0 where it is in the memory of a GPU
  std::int64_t input = 0;     ///< the samples of a step, and those that are read ahead (ReadAhead::bytes)
  std::int64_t buffers = 0;   ///< while a checkpoint is written or read
  std::int64_t snapshot = 0;  ///< the copy of its share of a checkpoint, from which that is written
  std::int64_t total() const { return arena + input + buffers + snapshot; }
};

/// Of the rank that takes most. `arena` and `input` as above.
ProcessMemory process_memory(const Program& training, const Graph&, std::int64_t arena, std::int64_t input);

/// What messages, collectives, conversions and what decides their bytes touch of the arena of the rank that
/// most is touched of, in bytes: a rank on an emulated device takes no more of its host.
std::int64_t exchanged_bytes(const Program&);

/// "" where `there` bytes of memory are enough for one rank, else what they are too few for.
std::string memory_shortfall(const ProcessMemory&, std::int64_t there);

/// How a rank that has `there` bytes of its node's memory saves: as asked, but where there is no room for a
/// snapshot while training waits.
CheckpointSaving possible_saving(CheckpointSaving asked, const ProcessMemory&, std::int64_t there);

/// For the log, e.g. "checkpoints: a rank writes up to 1.20 GiB (64.00 MiB of buffers), while training
/// waits".
std::string checkpoints_text(CheckpointSaving asked, CheckpointSaving possible, const ProcessMemory&);

/// How often a run of `total` steps saves after `done` steps: every so many steps (0: never), and at its end.
std::int64_t saves_left(std::int64_t done, std::int64_t total, std::int64_t every);

/// How many checkpoints there are at once, at most, beside the `existing` ones: the one that is being written
/// is there before an earlier one goes. `keep` as in TrainSettings.
std::int64_t most_new_checkpoints(std::int64_t saves, std::int64_t existing, std::int64_t keep);

/// What a run takes of the disk, in bytes, and what there is.
struct DiskNeed {
  std::filesystem::path run_dir;
  std::int64_t checkpoints = 0;       ///< more, at once
  std::int64_t checkpoint_bytes = 0;  ///< of one, at most: most_file_bytes()
  std::optional<double> free_bytes;   ///< of the run folder's file system, see alpa::free_bytes()
  double bytes() const { return static_cast<double>(checkpoints) * static_cast<double>(checkpoint_bytes); }
  bool fits() const { return !free_bytes || bytes() <= *free_bytes; }  ///< or nobody knows
  /// "'run' is to hold 3 checkpoints of 1.20 GiB more at once, 3.60 GiB in all; 50.00 GiB is free there"
  std::string text() const;
};
DiskNeed disk_need(const Graph&, const Program&, const std::filesystem::path& run_dir,
                   std::int64_t checkpoints);

/// Of a run that has made `done` of `total` steps, beside the checkpoints that are there.
DiskNeed disk_need_of_run(const Graph&, const Program&, const TrainSettings&, std::int64_t done,
                          std::int64_t total);

}  // namespace alpa
