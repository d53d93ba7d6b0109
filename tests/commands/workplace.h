#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/h5/temporary_folder.h"

namespace alpa {

/// A folder in which whole commands are run, as users run them, but with no home.
class Workplace : public testing::Test {
 protected:
  /// Waits for it to end; a command that takes minutes is stuck (status 124). `ranks` > 1: below mpiexec.
  CommandResult run(const std::string& command, int ranks = 1) const;

  /// Makes PLAN.h5 of the tiny GPT (or `model`) for the ranks of configs/clusters/local-4.toml.
  void make_plan(const std::string& name, const std::string& options, const std::string& model = "") const;
  /// Makes PLAN.h5 of a pinned plan: two stages of two ranks, the first splits the batch, the second heads
  /// and features.
  void make_mixed_plan(const std::string& name, const std::string& model = "") const;
  /// "alpa-train PLAN.h5 ..." in the folder, on synthetic data.
  std::string training(const std::string& plan, const std::string& run_dir, const std::string& options) const;
  /// Trains and expects that it ends well.
  void train(const std::string& plan, int ranks, const std::string& run_dir,
             const std::string& options) const;

  void write(const std::string& name, const std::string& text) const;
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  std::filesystem::path checkpoint(const std::string& run_dir, int step) const;
  std::vector<std::string> names_in(const std::string& folder) const;  ///< sorted

  /// One number, or text, of each line of RUN_DIR/metrics.jsonl.
  std::vector<double> numbers(const std::string& run_dir, const std::string& key) const;
  std::vector<std::string> texts(const std::string& run_dir, const std::string& key) const;

  /// What h5diff says of two checkpoints outside /provenance; "" where they are the same.
  std::string difference(const std::filesystem::path& a, const std::filesystem::path& b) const;

  const std::string tiny_gpt_ = ALPA_SOURCE_DIR "/tests/data/tiny_gpt.toml";
  const std::string cluster_ = ALPA_SOURCE_DIR "/configs/clusters/local-4.toml";

 private:
  TemporaryFolder folder_;
};

/// A command below mpiexec that goes on while the test does something to its ranks.
class RunningRanks {
 public:
  /// Writes what the command says to FOLDER/log.
  RunningRanks(const std::filesystem::path& folder, const std::string& command, int ranks);
  ~RunningRanks();  ///< kills what still runs
  RunningRanks(const RunningRanks&) = delete;
  RunningRanks& operator=(const RunningRanks&) = delete;

  /// Sends a signal to one rank; waits until it has started.
  void signal(int rank, int signal) const;
  bool is_running(int rank) const;
  /// Exit status of the command; -1 where it was killed or does not end.
  int wait();
  std::string log() const;

 private:
  std::filesystem::path folder_;
  int process_ = -1;
};

/// Polls until it holds; fails the test after a minute.
void wait_until(const std::string& what, const std::function<bool()>& holds);

}  // namespace alpa
