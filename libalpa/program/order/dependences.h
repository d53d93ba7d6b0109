#pragma once
#include <vector>

#include "libalpa/program/program.h"

namespace alpa {

/// Which run of an instruction another one waits for.
enum class Occasion {
  this_run,     ///< the same run of the segment that both are in
  micro_batch,  ///< the run for the micro-batch `lag` before; 0: the same
  latest,       ///< the latest run before this one, for whatever micro-batch
  left,         ///< of a send: its message for the micro-batch `lag` before has arrived
};

/// An instruction may start when this one is done. Where the run that is meant would be before the beginning
/// of the step, it is one of the step before: the last, or the last that had the same slot.
struct Dependence {
  int segment = 0, instruction = 0;
  Occasion occasion = Occasion::this_run;
  int lag = 0;
  bool operator==(const Dependence&) const = default;
};

/// What the instructions of a mesh wait for, beside the one before them in their lane:
/// [segment][instruction]. A receive waits for its message besides, a global sum for all meshes.
using Dependences = std::vector<std::vector<std::vector<Dependence>>>;

/// The order of a mesh's instructions, which memory, verifier, simulator and executor go by: reads after
/// writes, writes after reads and writes of a buffer's slot; a slot is used again when its last reader is
/// done, the memory of a message when that has arrived; what `after` says; buffers of a segment end with its
/// run, so the next run starts with them when all lanes are done with them. Near-linear in the instructions
/// of the segments, whatever the number of micro-batches; two instructions in one lane need no entry.
Dependences dependences(const MeshProgram&);
std::vector<Dependences> dependences(const Program&);  ///< [mesh]

/// Order within one run of a segment.
class RunOrder {
 public:
  RunOrder(const MeshProgram&, const Dependences&, int segment);

  /// Whether instruction `first` is surely done before `then` starts.
  bool before(int first, int then) const;

 private:
  std::vector<int> lane_;                ///< [instruction]
  std::vector<std::vector<int>> known_;  ///< [instruction][lane] -> last instruction done before it; -1
};

}  // namespace alpa
