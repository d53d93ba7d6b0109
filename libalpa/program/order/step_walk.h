#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/program/order/dependences.h"
#include "libalpa/program/program.h"

namespace alpa {

/// Where the runs of a mesh's segments are in its schedule.
class RunTable {
 public:
  RunTable(const MeshProgram&, int micro_batches);

  int run_of(int segment, int micro_batch) const;  ///< -1: none
  int latest(int run, int segment) const;          ///< the last run of the segment before that one; -1: none

  /// How many of the latest runs of what a segment waits for must be remembered, in the listed order.
  int remembered(const Dependence& wait, int waiting_segment) const;

  /// The micro-batch of the run that a dependence means, seen from that run: 0 for the update, -1 where it is
  /// in the step before.
  int micro_batch_of(const Dependence&, int run) const;

  /// Likewise of the run in the step before, where it is there.
  int micro_batch_of_step_before(const Dependence&, int run) const;

 private:
  const MeshProgram& mesh_;
  std::size_t micro_batches_;
  std::vector<int> run_of_, latest_, last_micro_batch_;
};

/// One run of an instruction in a step.
struct Instance {
  MeshIndex mesh{0};
  int run = 0, instruction = 0;
  int step = 0;
};

/// Every instruction of a step, or of several that follow each other, once, in any order that its dependences
/// and the overlap allow: whoever walks chooses which of the lanes that may go on does so. Memory is linear
/// in the runs of the instructions that others wait for.
class StepWalk {
 public:
  /// Keeps references.
  StepWalk(const Program&, const std::vector<Dependences>&, Overlap, int steps = 1);

  /// A lane whose next instruction waits for nothing any more.
  struct Turn {
    int lane = 0;  ///< numbered over all meshes
    Instance what;
    double ready_s = 0;  ///< when the last thing that it waited for was done
  };

  /// The lanes that may go on since the last call.
  std::vector<Turn> take_ready() { return std::exchange(ready_, {}); }

  /// The instruction of that turn is done.
  void done(const Turn&, double at_s);

  /// After all turns are done: an instruction that waits for ever, if there is one.
  std::optional<Instance> stuck() const;

  const Instruction& instruction(const Instance&) const;
  int micro_batch(const Instance&) const;  ///< -1: the update

 private:
  struct Queue {
    MeshIndex mesh{0};
    std::vector<std::vector<int>> instructions;  ///< [segment]
    std::size_t run = 0, next = 0;
    int step = 0;
    double done_s = 0;
    int next_waiting = -1;  ///< for the same
  };
  struct Mark {
    bool done = false;
    double at_s = 0;
    int first_waiting = -1;  ///< lane
  };
  /// Where a transfer leaves and arrives.
  struct Ends {
    MeshIndex from_mesh;
    int from_segment = 0, send = 0;
    MeshIndex to_mesh;
    int to_segment = 0, receive = 0;
  };

  const MeshProgram& mesh(MeshIndex m) const { return program_.meshes[m]; }
  std::size_t first_mark(int step) const {
    return static_cast<std::size_t>(step) * marks_.size() / static_cast<std::size_t>(steps_);
  }
  void go_on(int lane);
  bool find(Queue&, Instance&) const;
  bool waits_for(int lane, std::size_t mark, double& ready_s);

  const Program& program_;
  const std::vector<Dependences>& waits_;
  bool in_listed_order_;
  int steps_;
  std::vector<RunTable> runs_;
  std::vector<Ends> ends_;                               ///< [crossing]
  std::vector<std::vector<std::vector<long>>> mark_of_;  ///< [mesh][segment][instruction], -1: nobody waits
  std::vector<Mark> marks_;                              ///< those of a step, for each
  std::vector<Queue> queues_;
  std::vector<Turn> ready_, meeting_;  ///< at the global sum
};

/// One of the orders that the dependences allow, of the whole step, drawn with that seed: the same on every
/// rank. Where each rank does its own part of it, calls that wait for others cannot cross.
std::vector<Instance> random_order(const Program&, const std::vector<Dependences>&, std::uint64_t seed);

}  // namespace alpa
