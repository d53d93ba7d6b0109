#include "libalpa/runtime/lane_threads.h"

#include <signal.h>

#include <algorithm>

#include "libalpa/base/clock.h"
#include "libalpa/comm/naps.h"
#include "libalpa/comm/prompt_thread.h"
#include "libalpa/kernels/cpu/host_threads.h"

namespace alpa {

LaneThreads::LaneThreads(const Program& program, const MeshProgram& mesh, const RunTable& runs,
                         PreparedSteps& steps, std::vector<Stream*> lanes)
    : program_(program), mesh_(mesh), runs_(runs), steps_(steps), lanes_(std::move(lanes)) {
  runs_of_.resize(mesh.segments.size());
  for (const SegmentRun& run : mesh.schedule) earlier_.push_back(runs_of_[run.segment]++);

  std::size_t marks = 0;
  for (const Segment& segment : mesh.segments) {
    mark_of_.emplace_back(segment.instructions.size(), -1);
    turn_of_.emplace_back(segment.instructions.size(), -1);
  }
  for (std::vector<PreparedStep>& segment : steps_)
    for (PreparedStep& step : segment) {
      // What the same thread does in order needs no mark: lanes of computation are run as listed.
      std::erase_if(step.waits, [&](const Dependence& wait) {
        return computes(step.row.lane) && computes(steps_[wait.segment][wait.instruction].row.lane);
      });
      for (const Dependence& wait : step.waits)
        if (int& mark = mark_of_[wait.segment][wait.instruction]; mark < 0) mark = static_cast<int>(marks++);
    }
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (std::size_t i = 0; i < steps_[s].size(); ++i) {
      if (computes(steps_[s][i].row.lane) || !is_in_turn(steps_[s][i].row.lane)) continue;
      turn_of_[s][i] = static_cast<int>(marks++);
      if (int& mark = mark_of_[s][i]; mark < 0) mark = static_cast<int>(marks++);
    }
  end_mark_ = marks++;
  marks_ = std::make_unique<StepMarks>(marks);

  for (int lane = 0; lane < static_cast<int>(mesh.lanes.size()); ++lane) {
    if (computes(lane)) continue;
    LaneWalk& walk = walks_.emplace_back();
    walk.lane = lane;
    for (const Segment& segment : mesh.segments) {
      walk.instructions.emplace_back();
      for (int i = 0; i < static_cast<int>(segment.instructions.size()); ++i)
        if (segment.instructions[i].lane == lane) walk.instructions.back().push_back(i);
    }
  }

  // Signals are for the thread that asks for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// What is still under way, where a run ends early, is of memory that goes too.
LaneThreads::~LaneThreads() {
  if (!marks_->has_given_up()) cancel();
}

bool LaneThreads::computes(int lane) const {
  const LaneKind kind = mesh_.lanes[lane].kind;
  const bool takes_no_others = kind == LaneKind::copy || kind == LaneKind::fetch || kind == LaneKind::offload;
  return kind == LaneKind::compute || (takes_no_others && is_in_turn(lane));
}

bool LaneThreads::is_in_turn(int lane) const {
  return alpa::is_in_turn(mesh_.lanes[lane].kind, program_.overlap);
}

/// Of its segment.
std::int64_t LaneThreads::runs_before(std::int64_t step, int run) const {
  return step * runs_of_[mesh_.schedule[run].segment] + earlier_[run];
}

/// How many runs of what it waits for have to be done.
std::int64_t LaneThreads::needed(const Dependence& wait, std::int64_t step, int run) const {
  int meant = runs_.micro_batch_of(wait, run);
  if (meant < 0 && --step < 0) return 0;  // all that was before is done
  if (meant < 0) meant = runs_.micro_batch_of_step_before(wait, run);
  return runs_before(step, runs_.run_of(wait.segment, meant)) + 1;
}

bool LaneThreads::may_begin(const PreparedStep& step, const LaneWalk& walk) const {
  return std::ranges::all_of(step.waits, [&](const Dependence& wait) {
    return marks_->is_reached(static_cast<std::size_t>(mark_of_[wait.segment][wait.instruction]),
                              needed(wait, walk.step, static_cast<int>(walk.run)));
  });
}

/// Whether what the lane has still to do may go on in the next step.
bool LaneThreads::may_wait(const LaneWalk& walk) const {
  if (!leaves_rest_ || walk.step < step_) return false;
  const Segment& segment = mesh_.segment_of(mesh_.schedule[walk.run]);
  const int next = walk.instructions[mesh_.schedule[walk.run].segment][walk.next];
  return segment.kind == SegmentKind::update && segment.instructions[next].when != When::of_step_before;
}

void LaneThreads::add_row(std::vector<TimelineRow>& rows, const PreparedStep& step,
                          const StepContext& context, double start_s) const {
  rows.push_back(step.row);
  rows.back().micro_batch = context.micro_batch;
  rows.back().start_s = start_s - context.begin_s;
  rows.back().duration_s = monotonic_s() - start_s;
}

void LaneThreads::compute(StepContext context, std::vector<TimelineRow>* rows) {
  for (int r = 0; r < static_cast<int>(mesh_.schedule.size()); ++r) {
    const SegmentRun& run = mesh_.schedule[r];
    enter_run(context, program_, mesh_, run);
    std::vector<PreparedStep>& segment = steps_[run.segment];
    for (std::size_t i = 0; i < segment.size(); ++i) {
      PreparedStep& step = segment[i];
      if (const int turn = turn_of_[run.segment][i]; turn >= 0) {
        marks_->count(static_cast<std::size_t>(turn));
        marks_->wait(static_cast<std::size_t>(mark_of_[run.segment][i]), runs_before(step_, r) + 1);
      }
      if (!computes(step.row.lane)) continue;
      for (const Dependence& wait : step.waits)
        marks_->wait(static_cast<std::size_t>(mark_of_[wait.segment][wait.instruction]),
                     needed(wait, step_, r));
      if (acts(step, program_, context)) {
        context.stream = lanes_[step.row.lane];
        context.now = step.name;
        const double start_s = rows ? monotonic_s() : 0;
        step.instruction->run(context);
        if (rows) add_row(*rows, step, context, start_s);
      }
      if (const int mark = mark_of_[run.segment][i]; mark >= 0) marks_->count(static_cast<std::size_t>(mark));
    }
  }
  marks_->count(end_mark_);
}

/// The lane's next instruction, if there is one.
bool LaneThreads::find(LaneWalk& walk, int& instruction) const {
  for (; walk.step <= step_; ++walk.step, walk.run = 0)
    for (; walk.run < mesh_.schedule.size(); ++walk.run, walk.next = 0) {
      const std::vector<int>& instructions = walk.instructions[mesh_.schedule[walk.run].segment];
      if (walk.next == instructions.size()) continue;
      instruction = instructions[walk.next];
      return true;
    }
  return false;
}

/// Goes on with a lane as far as it can.
Progress LaneThreads::move_on(LaneWalk& walk, std::vector<TimelineRow>* rows) {
  Progress progress = Progress::none;
  for (int i = 0; find(walk, i); ++walk.next, walk.has_begun = false, progress = Progress::some) {
    const SegmentRun& run = mesh_.schedule[walk.run];
    PreparedStep& step = steps_[run.segment][i];
    if (!walk.has_begun) {
      const int turn = turn_of_[run.segment][i];
      if (turn >= 0 && !marks_->is_reached(static_cast<std::size_t>(turn),
                                           runs_before(walk.step, static_cast<int>(walk.run)) + 1))
        return progress;
      if (!may_begin(step, walk)) return progress;
      walk.has_begun = true;
      progress = Progress::some;
      walk.start_s = rows ? monotonic_s() : 0;
      walk.context = context_;
      walk.context.stream = lanes_[walk.lane];
      if (walk.step < step_) walk.context.pass = Pass::step;  // which the step before has left
      enter_run(walk.context, program_, mesh_, run);
      walk.context.now = step.name;
      walk.acts = acts(step, program_, walk.context);
      if (walk.acts) step.instruction->begin(walk.context);
    }
    if (walk.acts) {
      const Progress now = step.instruction->advance(walk.context);
      if (now != Progress::done) return std::max(progress, now);
      if (rows) add_row(*rows, step, walk.context, walk.start_s);
    }
    if (const int mark = mark_of_[run.segment][i]; mark >= 0) marks_->count(static_cast<std::size_t>(mark));
  }
  return Progress::done;
}

void LaneThreads::communicate() {
  for (Naps naps(monotonic_s());;) {
    const std::int64_t seen = marks_->changes();
    const bool has_computed = marks_->is_reached(end_mark_, step_ + 1);
    bool has_moved = false, is_over = true;
    for (LaneWalk& walk : walks_) {
      const Progress progress = move_on(walk, keeps_rows_ ? &rows_ : nullptr);
      has_moved = has_moved || progress == Progress::some;
      is_over = is_over && (progress == Progress::done || (has_computed && may_wait(walk)));
    }
    if (is_over) return;
    if (marks_->has_given_up()) return cancel();
    if (has_moved) {
      naps.moved(monotonic_s());
      continue;
    }
    for (Communicator* channel : *context_.channels) channel->move_messages();
    if (context_.served) context_.served->move_messages();
    const double nap_s = naps.next_s(monotonic_s(), has_computed || marks_->is_waited_for());
    if (nap_s == 0) continue;
    marks_->nap(seen, nap_s);
    for (const LaneWalk& walk : walks_)
      if (Communicator* const ranks = walk.has_begun ? partners(walk) : nullptr)
        ranks->look(walk.context.now);
  }
}

/// Of the instruction that a lane has begun; null where it takes part in nothing with others.
Communicator* LaneThreads::partners(const LaneWalk& walk) const {
  const int segment = mesh_.schedule[walk.run].segment;
  return steps_[segment][walk.instructions[segment][walk.next]].instruction->partners(walk.context);
}

void LaneThreads::cancel() {
  for (const LaneWalk& walk : walks_)
    if (Communicator* const ranks = walk.has_begun ? partners(walk) : nullptr) ranks->cancel();
}

void LaneThreads::serve(std::stop_token stop) {
  run_promptly();
  limit_host_threads(1);  // for what it copies; the cores are for who computes
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return is_in_step_; })) {
    lock.unlock();
    try {
      communicate();
    } catch (...) {
      failure_ = std::current_exception();
      marks_->give_up();
      cancel();
    }
    lock.lock();
    is_in_step_ = false;
    changed_.notify_all();
  }
}

void LaneThreads::begin_lanes() {
  failure_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_in_step_ = true;
  }
  changed_.notify_all();
}

void LaneThreads::join_lanes() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_in_step_; });
}

void LaneThreads::run(const StepContext& context, std::vector<TimelineRow>* rows) {
  if (rows) finish();  // theirs is the time of a step by itself
  if (leaves_rest_) {
    ++step_;
  } else {
    marks_->begin_step();
    step_ = 0;
    for (LaneWalk& walk : walks_) walk.step = 0, walk.run = walk.next = 0, walk.has_begun = false;
  }
  leaves_rest_ = program_.defers_updates && context.pass != Pass::rest && !rows;
  context_ = context;
  keeps_rows_ = rows != nullptr;
  rows_.clear();
  const std::size_t first_row = rows ? rows->size() : 0;
  begin_lanes();
  try {
    compute(context, rows);
  } catch (const StepMarks::Abandoned&) {
  } catch (...) {
    marks_->give_up();
    join_lanes();
    throw;
  }
  join_lanes();
  if (failure_) std::rethrow_exception(failure_);
  if (!rows) return;
  rows->insert(rows->end(), rows_.begin(), rows_.end());
  std::stable_sort(rows->begin() + static_cast<std::ptrdiff_t>(first_row), rows->end(),
                   [](const TimelineRow& a, const TimelineRow& b) { return a.start_s < b.start_s; });
}

void LaneThreads::finish() {
  if (!leaves_rest_) return;
  leaves_rest_ = false;
  begin_lanes();
  join_lanes();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace alpa
