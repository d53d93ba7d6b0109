#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace alpa {

/// A run as its metrics have it. Columns are as long as `step`; NaN: not known of that step.
struct RunHistory {
  std::vector<double> step;  ///< from 1 on, ascending
  std::vector<double> loss, evaluation_loss, gradient_norm, learning_rate;
  std::vector<double> step_s, predicted_step_s, data_s, checkpoint_s;
  std::vector<double> saved_bytes, saved_s;  ///< of a checkpoint that got its name before the step
  std::vector<double> samples, tokens;       ///< of the step; no tokens where samples are none
  std::vector<double> memory_bytes;          ///< the most that one rank takes

  std::vector<double> first_of_job;  ///< steps with which a job began, the first among them
  bool emulated = false;

  /// Steps together, so that about `most` rows are left: means of the numbers that are known, sums of samples
  /// and tokens; the last step of each. Beginnings of jobs stay.
  RunHistory thinned(std::size_t most) const;
};

// Of the numbers of a column that are known.
double known_sum(const std::vector<double>&);
double known_median(std::vector<double>);  ///< NaN where none is

/// A column by the name that its member has in a line of metrics.
struct RunColumn {
  const char* name;
  std::vector<double> RunHistory::*values;
  bool adds_up = false;  ///< over steps
};
std::span<const RunColumn> run_columns();

/// Reads metrics.jsonl or emulated.jsonl, as a run writes it, which may go on meanwhile: a last line that is
/// incomplete is left out. Throws Error(input) that names the line where one is no step.
RunHistory read_run_history(const std::filesystem::path&);

}  // namespace alpa
