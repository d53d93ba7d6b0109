#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "libalpa/base/log.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/trainer/metrics.h"
#include "libalpa/trainer/run_folder_lock.h"

namespace alpa {

/// The folder of a run while it is trained into: its lock and metrics.jsonl. For one rank.
class RunFiles {
 public:
  /// Locks the folder (RunFolderLock), before anything of it is read.
  RunFiles(std::filesystem::path run_dir, const Provenance&, Log&);

  /// Makes it ready for a run that goes on after `step` steps (prepare_run_folder()) and opens metrics.jsonl.
  /// Once no rank reads it any more.
  void prepare(std::int64_t step);
  /// Likewise for a run on emulated devices, from its first step on: check_untrained(), emulated.jsonl.
  void prepare_emulated();

  /// After prepare().
  MetricsFile& metrics() { return *metrics_; }

  /// Before the checkpoint of `step` steps: brings metrics to disk, and makes again what people removed under
  /// the run, with a warning.
  void prepare_save(std::int64_t step);

 private:
  void lock();
  void restore(std::int64_t step);

  std::filesystem::path run_dir_;
  std::string holder_;
  Log& log_;
  std::optional<RunFolderLock> lock_;
  std::optional<MetricsFile> metrics_;
};

}  // namespace alpa
