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
/// of collectives and messages (and of copies and moves), and with them MPI, as long as a step lasts. Each
/// goes through its instructions in their order, and begins one when what it waits for is done: receives and
/// gathers early, sends as soon as there is something to send. For lanes that the program does not overlap
/// the two wait for each other. Where steps may overlap each other (Program::defers_updates), a step ends
/// without the collectives of its update, which go on in the next.
class LaneThreads {
 public:
  /// Keeps references. Starts the thread, which sleeps between steps.
  LaneThreads(const Program&, const MeshProgram&, const RunTable&, PreparedSteps&,
              std::vector<Stream*> lanes);
  ~LaneThreads();

  /// A step, all of it where rows are given, which are added in the order in which they began. What a thread
  /// throws ends the other, and is thrown here when both are out of the step.
  void run(const StepContext&, std::vector<TimelineRow>* rows);

  void finish();  ///< what the last step has left to the next

 private:
  /// A lane's way through the step.
  struct LaneWalk {
    int lane = 0;
    std::vector<std::vector<int>> instructions;  ///< [segment]
    std::int64_t step = 0;
    std::size_t run = 0, next = 0;
    bool has_begun = false;  ///< the next one
    bool acts = false;       ///< likewise, once it has begun
    double start_s = 0;
    StepContext context;
  };

  bool computes(int lane) const;
  bool is_in_turn(int lane) const;
  std::int64_t runs_before(std::int64_t step, int run) const;
  std::int64_t needed(const Dependence&, std::int64_t step, int run) const;
  bool find(LaneWalk&, int& instruction) const;
  bool may_begin(const PreparedStep&, const LaneWalk&) const;
  bool may_wait(const LaneWalk&) const;
  void add_row(std::vector<TimelineRow>&, const PreparedStep&, const StepContext&, double start_s) const;
  void compute(StepContext, std::vector<TimelineRow>* rows);
  Progress move_on(LaneWalk&, std::vector<TimelineRow>* rows);
  void communicate();
  Communicator* partners(const LaneWalk&) const;
  void cancel();
  void serve(std::stop_token);
  void begin_lanes();
  void join_lanes();

  const Program& program_;
  const MeshProgram& mesh_;
  const RunTable& runs_;
  PreparedSteps& steps_;
  std::vector<Stream*> lanes_;
  std::vector<std::int64_t> earlier_;      ///< [run] runs of its segment before it, in a step
  std::vector<std::int64_t> runs_of_;      ///< [segment] likewise, in all
  std::vector<std::vector<int>> mark_of_;  ///< [segment][instruction] of its end, -1: nobody waits
  std::vector<std::vector<int>> turn_of_;  ///< likewise of its turn, -1: it waits for none
  std::size_t end_mark_;                   ///< of the computation of a step
  std::unique_ptr<StepMarks> marks_;
  std::vector<LaneWalk> walks_;  ///< of lanes that communicate
  StepContext context_;          ///< of the step
  std::int64_t step_ = 0;        ///< since lanes were all done
  bool leaves_rest_ = false;     ///< to the next step
  bool keeps_rows_ = false;
  std::vector<TimelineRow> rows_;  ///< of the other thread
  std::exception_ptr failure_;     ///< likewise

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_in_step_ = false;
  std::jthread thread_;  ///< last: it ends before all else goes
};

}  // namespace alpa
