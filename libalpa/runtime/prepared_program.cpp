#include "libalpa/runtime/prepared_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "libalpa/base/clock.h"

namespace alpa {
namespace {

bool is_take(const Instruction& instruction) {
  const auto* const exchange = std::get_if<Exchange>(&instruction.body);
  return exchange && exchange->kind == Exchange::Kind::take;
}

}  // namespace

bool acts(const PreparedStep& step, const Program& program, const StepContext& context) {
  if (!step.is_here) return false;
  const bool is_rest = step.when == When::of_step_before || step.takes;
  switch (context.pass) {
    case Pass::corrections:
      return step.when == When::norm_binds;
    case Pass::rest:
      return is_rest && acts(step.when, context.micro_batch, program.micro_batches);
    case Pass::first_step:
      if (step.when == When::of_step_before) return false;
      break;
    case Pass::step:
      break;
  }
  return acts(step.when, context.micro_batch, program.micro_batches);
}

void enter_run(StepContext& context, const Program& program, const MeshProgram& mesh, const SegmentRun& run) {
  context.micro_batch = run.micro_batch;
  context.point = {context.point.seed, context.inputs->step,
                   std::max(run.micro_batch, 0) * program.micro_batch_samples, mesh.gradient_square_sum >= 0,
                   context.inputs->group_rows};
}

PreparedProgram::PreparedProgram(const Graph& graph, const Program& program, MeshIndex mesh,
                                 const std::vector<int>& coordinate, DeviceIndex rank, Device& device,
                                 std::vector<Stream*> streams, std::uint64_t seed, const CostModel* costs)
    : program_(program),
      mesh_(program.at(mesh)),
      device_(device),
      streams_(std::move(streams)),
      runs_(mesh_, program.micro_batches),
      seed_(seed) {
  const StepSite site{graph, program, mesh_, coordinate, rank, device};
  std::map<int, std::shared_ptr<EmulatedClock>> clocks;
  const auto clock_of_lane = [&](int lane) {
    std::shared_ptr<EmulatedClock>& clock = clocks[lane];
    if (!clock) clock = std::make_shared<EmulatedClock>();
    return clock;
  };
  Dependences waits = dependences(mesh_);
  for (std::size_t s = 0; s < mesh_.segments.size(); ++s) {
    steps_.emplace_back();
    std::vector<double> seconds;
    if (costs) seconds = instruction_seconds(program, mesh_, mesh_.segments[s], *costs);
    for (std::size_t i = 0; i < mesh_.segments[s].instructions.size(); ++i) {
      const Instruction& instruction = mesh_.segments[s].instructions[i];
      const auto in_earnest = [&] {
        return std::visit([&](const auto& body) { return prepare(body, site); }, instruction.body);
      };
      PreparedStep step{
          costs && is_computation(instruction)
              ? prepare_emulated(seconds[i], decides_what_is_sent(instruction) ? in_earnest() : nullptr)
          : costs && is_move(instruction) ? prepare_emulated_move(seconds[i], clock_of_lane(instruction.lane))
                                          : in_earnest(),
          instruction.when,
          owner_of(mesh_, instruction).is_at(coordinate),
          is_take(instruction),
          std::move(waits[s][i]),
          fmt::format("{} of the {}", instruction_label(instruction, graph), segment_text(mesh_.segments[s])),
          {mesh, static_cast<int>(s), -1, static_cast<int>(i), instruction.lane, time_kind(instruction)}};
      // A send waits for its own messages.
      std::erase_if(step.waits, [](const Dependence& wait) { return wait.occasion == Occasion::left; });
      steps_.back().push_back(std::move(step));
    }
  }
  const bool is_on_host = device.kind() == DeviceKind::cpu || device.kind() == DeviceKind::emulated;
  if (program.overlap != Overlap::none && is_on_host) {
    lane_threads_.emplace(program, mesh_, runs_, steps_, streams_);
    return;
  }
  for (Stream* stream : streams_) ends_.push_back(stream->record());
  for (const std::vector<PreparedStep>& segment : steps_) marks_.emplace_back(segment.size());
  const bool checked = device.kind() == DeviceKind::checked_cpu;
  for (std::size_t s = 0; s < steps_.size(); ++s)
    for (PreparedStep& step : steps_[s]) {
      // What has one stream is in order anyway.
      if (!checked)
        std::erase_if(step.waits, [&](const Dependence& wait) {
          const int other = step_of(wait.segment, wait.instruction).row.lane;
          return streams_[other] == streams_[step.row.lane];
        });
      mark(step.waits, static_cast<int>(s));
    }
  if (!checked) return;
  waits_ = dependences(program);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    uses_.emplace_back(steps_[s].size());
    for (std::size_t i = 0; i < steps_[s].size(); ++i) {
      const Instruction& instruction = mesh_.segments[s].instructions[i];
      for (const BufferIndex b : buffers_read(instruction))
        uses_[s][i].push_back({BufferAddress(mesh_, b), false});
      for (const BufferIndex b : buffers_written(instruction))
        uses_[s][i].push_back({BufferAddress(mesh_, b), true});
      if (marks_[s][i]) marks_[s][i]->clocks.resize(static_cast<std::size_t>(program.micro_batches));
    }
  }
}

/// Gives what these wait for enough events for the runs that they may mean.
void PreparedProgram::mark(const std::vector<Dependence>& waits, int waiting_segment) {
  for (const Dependence& wait : waits) {
    std::unique_ptr<Mark>& mark = marks_[wait.segment][wait.instruction];
    if (!mark) mark = std::make_unique<Mark>();
    auto& events = mark->events;
    const int lane = step_of(wait.segment, wait.instruction).row.lane;
    const int remembered = runs_.remembered(wait, waiting_segment);
    while (std::ssize(events) < remembered) events.push_back(streams_[lane]->record());
  }
}

void PreparedProgram::run_one(StepContext& context, int run, int instruction,
                              std::vector<TimelineRow>* rows) {
  const SegmentRun& now = mesh_.schedule[run];
  PreparedStep& step = step_of(now.segment, instruction);
  const int lane = step.row.lane;
  Stream& stream = *streams_[lane];
  // Even to queue work waits, where much is queued behind a message that does not come.
  const DeviceWaits::Call call(device_.waits(), "the queueing of an instruction");
  for (const Dependence& wait : step.waits) {
    int meant = runs_.micro_batch_of(wait, run);
    if (meant < 0 && (!program_.defers_updates || watch_)) continue;  // in the step before, which has ended
    if (meant < 0) meant = runs_.micro_batch_of_step_before(wait, run);
    const Mark& mark = *marks_[wait.segment][wait.instruction];
    const auto micro_batch = static_cast<std::size_t>(meant);
    stream.wait(*mark.events[micro_batch % mark.events.size()]);
    if (watch_) watch_->wait(lane, mark.clocks[micro_batch]);
  }
  if (acts(step, program_, context)) {
    if (watch_) {
      watch_->begin(lane, &step.name);
      for (const Use& use : uses_[now.segment][instruction]) {
        const std::int64_t arena = use.buffer.space == MemorySpace::device ? 0 : mesh_.memory.total,
                           begin =
                               arena + use.buffer.offset + use.buffer.slot(context) * use.buffer.slot_bytes;
        watch_->touch(begin, begin + use.buffer.bytes(), use.writes);
      }
    }
    context.stream = &stream;
    context.now = step.name;
    const double start = rows ? monotonic_s() : 0;
    step.instruction->run(context);
    if (rows) {
      stream.synchronize();
      rows->push_back(step.row);
      rows->back().micro_batch = now.micro_batch;
      rows->back().start_s = start - context.begin_s;
      rows->back().duration_s = monotonic_s() - start;
    }
  }
  Mark* const mark = marks_[now.segment][instruction].get();
  if (!mark) return;
  const auto micro_batch = static_cast<std::size_t>(std::max(now.micro_batch, 0));
  stream.record(*mark->events[micro_batch % mark->events.size()]);
  if (watch_) mark->clocks[micro_batch] = watch_->record(lane);
}

/// Of a server: what it runs when its mesh runs that.
std::vector<int> PreparedProgram::beside(const Instance& instance) const {
  const MeshProgram& served = program_.meshes.front();
  const int segment = served.schedule[instance.run].segment;
  const std::vector<Instruction>&theirs = served.segments[segment].instructions,
        &ours = mesh_.segments[segment].instructions;
  const auto sums_up = [](const Instruction& i) {
    return std::holds_alternative<Serve>(i.body) || std::holds_alternative<GlobalSum>(i.body);
  };
  std::vector<int> own;
  for (int i = 0, next = 0; i <= instance.instruction; ++i) {
    own.clear();
    if (!std::holds_alternative<GlobalSum>(theirs[i].body) && !served_by(served, theirs[i])) continue;
    do {
      own.push_back(next);
    } while (!sums_up(ours[next++]));
  }
  return own;
}

void PreparedProgram::run(StepContext context, std::vector<TimelineRow>* rows) {
  if (lane_threads_) return lane_threads_->run(context, rows);
  const bool serves = program_.servers && &mesh_ == &*program_.servers;
  const bool checked = !waits_.empty() && !(serves && program_.has_states_at_servers());
  if (checked) {
    watch_.emplace(streams_.size());
    for (const Instance& instance : random_order(program_, waits_, seed_++)) {
      if (&program_.meshes[instance.mesh] != (serves ? &program_.meshes.front() : &mesh_)) continue;
      enter_run(context, program_, mesh_, mesh_.schedule[instance.run]);
      if (!serves) run_one(context, instance.run, instance.instruction, rows);
      for (const int own : serves ? beside(instance) : std::vector<int>{})
        run_one(context, instance.run, own, rows);
    }
  }
  const bool leaves_rest = program_.defers_updates && !checked && !rows;
  if (rows)  // of this step alone
    for (Stream* stream : streams_) stream->synchronize();
  // Of lanes that go on in the next step before the update, of others after it.
  const auto record_ends = [&](bool goes_on) {
    const DeviceWaits::Call call(device_.waits(), "the queueing of the end of a step");
    for (std::size_t lane = 1; lane < streams_.size(); ++lane) {
      const Lane& of = mesh_.lanes[lane];
      const bool may_go_on = leaves_rest && of.kind == LaneKind::collective && of.axis >= 0;
      if (streams_[lane] != streams_[0] && may_go_on == goes_on) streams_[lane]->record(*ends_[lane]);
    }
  };
  for (int r = 0; r < static_cast<int>(mesh_.schedule.size()) && !checked; ++r) {
    const SegmentRun& run = mesh_.schedule[r];
    if (mesh_.segment_of(run).kind == SegmentKind::update) record_ends(true);
    enter_run(context, program_, mesh_, run);
    const auto count = static_cast<int>(mesh_.segment_of(run).instructions.size());
    for (int i = 0; i < count; ++i) {
      run_one(context, r, i, rows);
      for (Communicator* channel : *context.channels) channel->move_messages();
      if (context.served) context.served->move_messages();
    }
  }
  record_ends(false);
  const DeviceWaits::Call call(device_.waits(), "the queueing of the end of a step");
  for (std::size_t lane = 1; lane < streams_.size(); ++lane)
    if (streams_[lane] != streams_[0]) streams_[0]->wait(*ends_[lane]);
}

void PreparedProgram::run_kernels(StepContext context) {
  context.stream = streams_[0];
  context.micro_batch = 0;
  for (const std::vector<PreparedStep>& segment : steps_)
    for (const PreparedStep& step : segment) step.instruction->run_kernels(context);
}

}  // namespace alpa
