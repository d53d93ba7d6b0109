#include "libalpa/program/order/step_walk.h"

#include <algorithm>
#include <random>

namespace alpa {

namespace {

/// A state's copies are refreshed once more where the update is corrected.
std::size_t crossing(int transfer, const Instruction& instruction) {
  return 2 * static_cast<std::size_t>(transfer) + (instruction.when == When::norm_binds ? 1 : 0);
}

}  // namespace

RunTable::RunTable(const MeshProgram& mesh, int micro_batches)
    : mesh_(mesh), micro_batches_(static_cast<std::size_t>(std::max(micro_batches, 1))) {
  run_of_.assign(mesh.segments.size() * micro_batches_, -1);
  std::vector<int> latest(mesh.segments.size(), -1);
  last_micro_batch_.assign(mesh.segments.size(), 0);
  for (std::size_t r = 0; r < mesh.schedule.size(); ++r) {
    const SegmentRun& run = mesh.schedule[r];
    const auto segment = static_cast<std::size_t>(run.segment);
    latest_.insert(latest_.end(), latest.begin(), latest.end());
    latest[segment] = static_cast<int>(r);
    last_micro_batch_[segment] = std::max(run.micro_batch, 0);
    run_of_[segment * micro_batches_ + static_cast<std::size_t>(std::max(run.micro_batch, 0))] =
        static_cast<int>(r);
  }
}

int RunTable::run_of(int segment, int micro_batch) const {
  return run_of_[static_cast<std::size_t>(segment) * micro_batches_ + static_cast<std::size_t>(micro_batch)];
}

int RunTable::latest(int run, int segment) const {
  return latest_[static_cast<std::size_t>(run) * mesh_.segments.size() + static_cast<std::size_t>(segment)];
}

int RunTable::micro_batch_of(const Dependence& wait, int run) const {
  const int now = std::max(mesh_.schedule[run].micro_batch, 0);
  if (wait.occasion == Occasion::this_run) return now;
  if (wait.occasion != Occasion::latest) return std::max(now - wait.lag, -1);
  const int before = latest(run, wait.segment);
  return before < 0 ? -1 : std::max(mesh_.schedule[before].micro_batch, 0);
}

int RunTable::micro_batch_of_step_before(const Dependence& wait, int run) const {
  const int last = last_micro_batch_[static_cast<std::size_t>(wait.segment)],
            now = std::max(mesh_.schedule[run].micro_batch, 0);
  return wait.lag > 0 ? last - (last - now) % wait.lag : last;  // of those before that have its slot
}

int RunTable::remembered(const Dependence& wait, int waiting_segment) const {
  std::vector<int> begun(mesh_.schedule.size() + 1);  // runs of its segment up to that one
  for (std::size_t r = 0; r < mesh_.schedule.size(); ++r)
    begun[r + 1] = begun[r] + (mesh_.schedule[r].segment == wait.segment ? 1 : 0);
  int most = 1;
  for (std::size_t r = 0; r < mesh_.schedule.size(); ++r) {
    if (mesh_.schedule[r].segment != waiting_segment) continue;
    const int micro_batch = micro_batch_of(wait, static_cast<int>(r));
    if (micro_batch < 0) continue;
    const int meant = run_of(wait.segment, micro_batch);
    if (meant >= 0 && meant <= static_cast<int>(r)) most = std::max(most, begun[r + 1] - begun[meant]);
  }
  return most;
}

StepWalk::StepWalk(const Program& program, const std::vector<Dependences>& waits, Overlap overlap, int steps)
    : program_(program),
      waits_(waits),
      in_listed_order_(overlap == Overlap::none),
      steps_(steps),
      ends_(2 * program.transfers.size()) {
  std::size_t marks = 0;
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    runs_.emplace_back(mesh, program.micro_batches);
    std::vector<std::vector<long>>& of_mesh = mark_of_.emplace_back();
    for (const Segment& segment : mesh.segments) of_mesh.emplace_back(segment.instructions.size(), -1);
    const auto mark = [&](std::size_t segment, std::size_t instruction) {
      long& at = of_mesh[segment][instruction];
      if (at >= 0) return;
      at = static_cast<long>(marks);
      marks += mesh.segments[segment].kind == SegmentKind::update
                   ? 1
                   : static_cast<std::size_t>(std::max(program.micro_batches, 1));
    };
    const std::size_t first_queue = queues_.size();
    queues_.resize(first_queue + (in_listed_order_ ? 1 : mesh.lanes.size()));
    for (std::size_t q = first_queue; q < queues_.size(); ++q) {
      queues_[q].mesh = m;
      queues_[q].instructions.resize(mesh.segments.size());
    }
    for (std::size_t s = 0; s < mesh.segments.size(); ++s)
      for (std::size_t i = 0; i < mesh.segments[s].instructions.size(); ++i) {
        const Instruction& instruction = mesh.segments[s].instructions[i];
        const bool in_turn = is_in_turn(mesh.lanes[instruction.lane].kind, overlap);
        const std::size_t lane = in_turn ? 0 : static_cast<std::size_t>(instruction.lane);
        queues_[first_queue + lane].instructions[s].push_back(static_cast<int>(i));
        const int segment = static_cast<int>(s), index = static_cast<int>(i);
        if (const auto* send = std::get_if<Send>(&instruction.body)) {
          Ends& ends = ends_[crossing(send->transfer, instruction)];
          ends.from_mesh = m, ends.from_segment = segment, ends.send = index;
          mark(s, i);
        }
        if (const auto* receive = std::get_if<Receive>(&instruction.body)) {
          Ends& ends = ends_[crossing(receive->transfer, instruction)];
          ends.to_mesh = m, ends.to_segment = segment, ends.receive = index;
          mark(s, i);
        }
        if (in_listed_order_) continue;
        for (const Dependence& wait : waits[m][s][i])
          mark(static_cast<std::size_t>(wait.segment), static_cast<std::size_t>(wait.instruction));
      }
  }
  marks_.resize(marks * static_cast<std::size_t>(steps));
  for (std::size_t lane = 0; lane < queues_.size(); ++lane) go_on(static_cast<int>(lane));
}

const Instruction& StepWalk::instruction(const Instance& what) const {
  const MeshProgram& of = mesh(what.mesh);
  return of.segment_of(of.schedule[what.run]).instructions[what.instruction];
}

int StepWalk::micro_batch(const Instance& what) const {
  return mesh(what.mesh).schedule[what.run].micro_batch;
}

/// The next instruction of a queue, if there is one.
bool StepWalk::find(Queue& queue, Instance& next) const {
  const std::vector<SegmentRun>& schedule = mesh(queue.mesh).schedule;
  for (; queue.step < steps_; ++queue.step, queue.run = 0)
    for (; queue.run < schedule.size(); ++queue.run, queue.next = 0) {
      const auto& instructions = queue.instructions[schedule[queue.run].segment];
      if (queue.next == instructions.size()) continue;
      next = {queue.mesh, static_cast<int>(queue.run), instructions[queue.next], queue.step};
      return true;
    }
  return false;
}

/// Whether the lane has to wait for that; if not, what it waited for may have been the last.
bool StepWalk::waits_for(int lane, std::size_t mark, double& ready_s) {
  Mark& other = marks_[mark];
  ready_s = std::max(ready_s, other.at_s);
  if (other.done) return false;
  queues_[lane].next_waiting = other.first_waiting;
  other.first_waiting = lane;
  return true;
}

void StepWalk::go_on(int lane) {
  Queue& queue = queues_[lane];
  Instance next;
  if (!find(queue, next)) return;
  const Instruction& now = instruction(next);
  double ready_s = queue.done_s;
  const auto waits = [&](MeshIndex mesh, int segment, int instruction, int micro_batch, int step) {
    if (mesh < 0) return true;  // for a message that nobody sends or receives
    const long first = mark_of_[mesh][segment][instruction];
    return waits_for(lane, first_mark(step) + static_cast<std::size_t>(first + micro_batch), ready_s);
  };
  const int segment = mesh(next.mesh).schedule[queue.run].segment,
            micro_batch = std::max(this->micro_batch(next), 0);
  for (const Dependence& wait : waits_[next.mesh][segment][next.instruction]) {
    int meant = runs_[next.mesh].micro_batch_of(wait, next.run), step = next.step;
    if (meant < 0 && --step < 0) continue;  // before the first
    if (meant < 0) meant = runs_[next.mesh].micro_batch_of_step_before(wait, next.run);
    if (wait.occasion == Occasion::left) {
      const Ends& ends = ends_[crossing(std::get<Send>(now.body).transfer, now)];
      if (waits(ends.to_mesh, ends.to_segment, ends.receive, meant, step)) return;
    } else if (!in_listed_order_) {
      if (waits(next.mesh, wait.segment, wait.instruction, meant, step)) return;
    }
  }
  if (const auto* receive = std::get_if<Receive>(&now.body)) {
    const Ends& ends = ends_[crossing(receive->transfer, now)];
    if (waits(ends.from_mesh, ends.from_segment, ends.send, micro_batch, next.step)) return;
  }
  const Turn turn{lane, next, ready_s};
  const bool acts = alpa::acts(now.when, this->micro_batch(next), program_.micro_batches);
  if (!acts || !std::holds_alternative<GlobalSum>(now.body)) {
    ready_.push_back(turn);
    return;
  }
  meeting_.push_back(turn);
  if (meeting_.size() < program_.meshes.size()) return;
  double all_s = 0;
  for (const Turn& one : meeting_) all_s = std::max(all_s, one.ready_s);
  for (Turn& one : meeting_) {
    one.ready_s = all_s;
    ready_.push_back(one);
  }
  meeting_.clear();
}

void StepWalk::done(const Turn& turn, double at_s) {
  Queue& queue = queues_[turn.lane];
  queue.done_s = at_s;
  ++queue.next;
  const SegmentRun& run = mesh(turn.what.mesh).schedule[turn.what.run];
  const long first = mark_of_[turn.what.mesh][run.segment][turn.what.instruction];
  if (first >= 0) {
    Mark& mark =
        marks_[first_mark(turn.what.step) + static_cast<std::size_t>(first + std::max(run.micro_batch, 0))];
    mark.done = true;
    mark.at_s = at_s;
    for (int lane = std::exchange(mark.first_waiting, -1); lane >= 0;) {
      const int next = std::exchange(queues_[lane].next_waiting, -1);
      go_on(lane);
      lane = next;
    }
  }
  go_on(turn.lane);
}

std::optional<Instance> StepWalk::stuck() const {
  for (const Queue& queue : queues_) {
    Queue at = queue;
    Instance next;
    if (find(at, next)) return next;
  }
  return std::nullopt;
}

std::vector<Instance> random_order(const Program& program, const std::vector<Dependences>& waits,
                                   std::uint64_t seed) {
  StepWalk walk(program, waits, Overlap::all);
  std::mt19937_64 random(seed);
  std::vector<Instance> order;
  std::vector<StepWalk::Turn> ready = walk.take_ready();
  const auto run = [&](std::size_t at) {
    const StepWalk::Turn turn = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    order.push_back(turn.what);
    walk.done(turn, 0);
    for (const StepWalk::Turn& next : walk.take_ready()) ready.push_back(next);
    return std::holds_alternative<GlobalSum>(walk.instruction(turn.what).body);
  };
  const auto is_sum = [&](const StepWalk::Turn& turn) {
    return std::holds_alternative<GlobalSum>(walk.instruction(turn.what).body);
  };
  while (!ready.empty()) {
    if (!run(random() % ready.size())) continue;
    // All meshes meet there, so that none waits for one that still has something else to do.
    for (auto other = std::ranges::find_if(ready, is_sum); other != ready.end();
         other = std::ranges::find_if(ready, is_sum))
      run(static_cast<std::size_t>(other - ready.begin()));
  }
  return order;
}

}  // namespace alpa
