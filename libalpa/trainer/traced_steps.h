#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/plan/plan.h"
#include "libalpa/program/order/measured_steps.h"
#include "libalpa/program/order/trace.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/trainer/train_settings.h"

namespace alpa {

/// For one rank: that the file of --trace can be written, noticed before the first step rather than steps
/// later. The folder of the run may be missing as yet. Throws Error(input).
void check_trace(const TrainSettings&);

/// The steps of which a run keeps what each instruction took, and the files that come of them: the trace of
/// one step (--trace), and the steps for calibration (--timeline-steps) with their plan: every second one, as
/// the step between says what measuring costs. The first two steps of a run are left out, which touch memory
/// for the first time; the trace of a run of no more is of the last.
class TracedSteps {
 public:
  /// Of a run that has done `done` of `total` steps. Keeps references.
  TracedSteps(const TrainSettings&, const Plan&, const Graph&, const Program&, const Provenance&,
              TimelineKind, std::int64_t done, std::int64_t total);

  /// Whether the step of that number is one of them. All ranks answer alike.
  bool has(std::int64_t step) const;
  /// In words, that the run is too short for as many as are asked for; "" where it is not.
  std::string shortage() const;

  /// For one rank: makes sure, before the first step, that the files can be written.
  void prepare() const;
  /// What it keeps of a step that it has, on rank 0. Collective over the ranks of the program.
  struct OfRanks {
    std::vector<RankRows> rows;             ///< of those that the trace shows, or only one of each mesh
    std::vector<std::int64_t> computed_ns;  ///< [rank]
  };
  OfRanks gather(std::int64_t step, const Executor&, Communicator&, Stream&) const;
  /// For one rank: takes that, and writes the trace if it is of this step.
  void add(std::int64_t step, double step_s, OfRanks);
  /// For one rank: takes what the step of that number took that it has not; after the last one writes all.
  void add_between(std::int64_t step, double step_s);
  /// For one rank, after the run's last step: writes the steps that there are, if it stopped early.
  void finish();
  /// Which rank computed longest in these steps, in words; "" where that says nothing.
  std::string slowest_text() const;

 private:
  const TrainSettings& settings_;
  const Plan& plan_;
  const Graph& graph_;
  const Program& program_;
  const Provenance& provenance_;
  TimelineKind kind_;
  std::int64_t first_, trace_ = -1;  ///< numbers of steps
  std::int64_t kept_;
  MeasuredSteps measured_;
  std::vector<double> computed_s_;  ///< [rank] in all of them
  int steps_ = 0;
};

}  // namespace alpa
