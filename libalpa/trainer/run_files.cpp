#include "libalpa/trainer/run_files.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "libalpa/checkpoint/run_folder.h"

namespace alpa {

RunFiles::RunFiles(std::filesystem::path run_dir, const Provenance& provenance, Log& log)
    : run_dir_(std::move(run_dir)),
      holder_(fmt::format("process {} on {}{}", getpid(), provenance.host,
                          provenance.job_id.empty() ? "" : fmt::format(", job {}", provenance.job_id))),
      log_(log) {
  lock();
}

void RunFiles::lock() { lock_.emplace(run_dir_, holder_, log_); }

void RunFiles::prepare(std::int64_t step) {
  prepare_run_folder(run_dir_, step, log_);
  metrics_.emplace(run_dir_ / "metrics.jsonl", step);
}

void RunFiles::prepare_emulated() {
  check_untrained(run_dir_);
  metrics_.emplace(run_dir_ / "emulated.jsonl", 0);
}

void RunFiles::prepare_save(std::int64_t step) {
  restore(step);
  metrics_->sync();
}

void RunFiles::restore(std::int64_t step) {
  const bool has_folder = std::filesystem::exists(run_dir_);
  if (!lock_->is_in_place()) lock();
  if (!metrics_->restore_if_removed()) return;
  const std::string folder = run_dir_.string();
  log_.warning(has_folder
                   ? fmt::format("'{}/metrics.jsonl' was removed during the run: it is written again", folder)
                   : fmt::format("'{}' was removed during the run: it is made again, with metrics.jsonl and "
                                 "the checkpoints from step {} on; earlier ones are gone",
                                 folder, step));
}

}  // namespace alpa
