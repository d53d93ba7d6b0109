#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "libalpa/graph/graph.h"
#include "libalpa/kernels/kernel.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/program.h"
#include "libalpa/program/state_tiles.h"
#include "libalpa/program/step_samples.h"
#include "libalpa/runtime/step_inputs.h"

namespace alpa {

struct StepResult {
  std::int64_t step = 0;       ///< as of the inputs
  double loss_sum = 0;         ///< sum of losses over all targets of the step; the same on every rank
  double gradient_norm = 0;    ///< global, before clipping, times the loss scale; 0 in evaluation
  std::optional<double> lead;  ///< steps by which the fastest device was ahead at most (MeshProgram::lead)
  double correction_s = 0;     ///< spent on making updates again as the norm bound (UpdateOrder::before_norm)
  std::span<const double> metric_sums;  ///< of each of the graph's metrics; until the next run
};

/// Runs programs on one rank: the arena, the prepared kernels, the communicators of its mesh, and nothing
/// that the verifier and the simulator do not see. No memory is allocated after construction.
class Executor {
 public:
  /// Collective over `world`, whose rank r is device r of the plan; gives it the plan's nodes. `programs[0]`
  /// is the one that run() takes by default (training, or evaluation alone); others (evaluation) share its
  /// states. Keeps references to graph, programs, device and world. Where the device is emulated, `costs` say
  /// how long each computation takes; results, the loss among them, mean nothing then.
  Executor(const Graph&, std::vector<const Program*> programs, Device&, Communicator& world,
           std::uint64_t seed, const CostModel* costs = nullptr);
  ~Executor();

  std::int64_t arena_bytes() const;
  MeshIndex mesh() const;  ///< of this rank
  Device& device() const;
  const StepSamples& samples() const;  ///< that this rank takes in a step
  /// Of its rows in gathers of those of ids that differ, what it has sent so far; nullopt: it had none.
  std::optional<double> sent_share_of_rows() const;

  int most_unknown_steps() const;  ///< whose results are known in later ones
  bool knows_all_steps() const;

  std::vector<StateTile> state_tiles() const;
  Indexed<StateIndex, int> state_terms() const;  ///< of all devices
  /// Host copies of all bytes of a tile, or of those from `first` on; blocks until done.
  void write_state(const StateTile&, const void* host);
  void read_state(const StateTile&, void* host);
  void write_state(const StateTile&, std::int64_t first, std::span<const std::byte> host);
  void read_state(const StateTile&, std::int64_t first, std::span<std::byte> host);

  /// Runs one step of programs[which] and waits for it; returns what came out. Where updates come in the
  /// next step (Program::defers_updates), that is known in the next step, and returned then: nothing after
  /// the first. Where servers hold the states, it is known Program::staleness + 1 steps later. Every rank
  /// calls it.
  std::optional<StepResult> run(const StepInputs&, std::size_t which = 0);

  /// Makes the updates that the last step has left to the next, and returns what came out of the oldest step
  /// that is not known yet; nullopt where there are none. States are read and written, and other programs
  /// run, after all of them are. Every rank calls it.
  std::optional<StepResult> finish();

  /// Keeps the rows of the following steps, from the start of each; empties what was kept.
  void keep_timeline(bool keep);
  const std::vector<TimelineRow>& timeline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace alpa
