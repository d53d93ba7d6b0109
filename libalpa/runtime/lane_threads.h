#pragma once
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "libalpa/program/order/step_walk.h"
#include "libalpa/runtime/prepared_step.h"
#include "libalpa/runtime/step_marks.h"

namespace alpa {

/// Runs a mesh's steps on a rank of the host by two threads: the caller computes, and another has all lanes
/// of collectives and messages (and of copies), and with them MPI, as long as a step lasts. Each goes through
/// its instructions in their order, and begins one when what it waits for is done: receives and gathers
/// early, sends as soon as there is something to send. For lanes that the program does not overlap the two
/// wait for each other.
class LaneThreads {
 public:
  /// Keeps references. Starts the thread, which sleeps between steps.
  LaneThreads(const Program&, const MeshProgram&, const RunTable&, PreparedSteps&,
              std::vector<Stream*> lanes);
  ~LaneThreads();

  /// A whole step; adds rows where given, in the order in which they began. What a thread throws ends the
  /// other, and is thrown here when both are out of the step.
  void run(const StepContext&, std::vector<TimelineRow>* rows);

 private:
  /// A lane's way through the step.
  struct LaneWalk {
    int lane = 0;
    std::vector<std::vector<int>> instructions;  ///< [segment]
    std::size_t run = 0, next = 0;
    bool has_begun = false;  ///< the next one
    bool acts = false;       ///< likewise, once it has begun
    double start_s = 0;
    StepContext context;
  };

  bool computes(int lane) const;
  bool is_in_turn(int lane) const;
  std::int64_t needed(const Dependence&, int run) const;
  bool find(LaneWalk&, int& instruction) const;
  bool may_begin(const PreparedStep&, int run) const;
  void add_row(std::vector<TimelineRow>&, const PreparedStep&, const StepContext&, double start_s) const;
  void compute(StepContext, std::vector<TimelineRow>* rows);
  Progress move_on(LaneWalk&, std::vector<TimelineRow>* rows);
  void communicate();
  Communicator* partners(const LaneWalk&) const;
  void cancel();
  void serve(std::stop_token);

  const Program& program_;
  const MeshProgram& mesh_;
  const RunTable& runs_;
  PreparedSteps& steps_;
  std::vector<Stream*> lanes_;
  std::vector<std::int64_t> earlier_;      ///< [run] runs of its segment before it
  std::vector<std::vector<int>> mark_of_;  ///< [segment][instruction] of its end, -1: nobody waits
  std::vector<std::vector<int>> turn_of_;  ///< likewise of its turn, -1: it waits for none
  std::unique_ptr<StepMarks> marks_;
  std::vector<LaneWalk> walks_;  ///< of lanes that communicate
  StepContext context_;          ///< of the step
  bool keeps_rows_ = false;
  std::vector<TimelineRow> rows_;  ///< of the other thread
  std::exception_ptr failure_;     ///< likewise

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_in_step_ = false;
  std::jthread thread_;  ///< last: it ends before all else goes
};

}  // namespace alpa
