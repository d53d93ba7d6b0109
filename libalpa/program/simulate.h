#pragma once
#include <string>
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/program/program.h"

namespace alpa {

/// What an instruction spends its time on.
enum class TimeKind { compute, collective, transfer, wait };

/// One instruction's run on one stage: a row of the planned (or measured) timeline.
struct TimelineRow {
  int stage = 0;
  SegmentKind segment = SegmentKind::forward;
  int micro_batch = -1;
  int instruction = 0;  ///< index in the segment
  TimeKind kind = TimeKind::compute;
  double start_s = 0, duration_s = 0;
};

struct Timeline {
  std::vector<TimelineRow> rows;  ///< empty unless asked for
  std::vector<StageTime> stages;
  double step_s = 0;
};

/// Plays the program's own instructions with the model's costs: a receive starts when its send is done, a
/// global sum when all stages are there.
Timeline simulate(const Program&, const CostModel&, bool keep_rows = false);

/// Seconds of every instruction of a segment, receives and sums without waiting.
std::vector<double> instruction_seconds(const Program&, const StageProgram&, SegmentKind, const CostModel&);

/// What a row is called in traces: "einsum block.0.mlp.up", "all-reduce 0", "send 3".
std::string instruction_label(const Instruction&, const Graph&);
TimeKind time_kind(const Instruction&);

}  // namespace alpa
