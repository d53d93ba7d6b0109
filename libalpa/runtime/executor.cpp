#include "libalpa/runtime/executor.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <new>
#include <optional>

#include "libalpa/base/clock.h"
#include "libalpa/kernels/cpu/gradient_factor.h"
#include "libalpa/program/message_pairs.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/runtime/prepared_program.h"

namespace alpa {

struct Executor::State {
  const Graph& graph;
  std::vector<const Program*> programs;
  Device& device;
  Communicator& world;
  MeshIndex place;
  std::vector<int> coordinate;
  std::vector<std::pair<Lane, std::unique_ptr<Stream>>> lanes;  ///< the compute lane first
  std::unique_ptr<DeviceMemory> arena, host_arena;
  std::unique_ptr<DeviceMemory> staging;        ///< scalars on their way to the host
  std::unique_ptr<DeviceMemory> input_staging;  ///< StepInputs
  StepSamples samples;
  std::vector<std::unique_ptr<Communicator>> axes, further_channels;
  std::vector<Communicator*> channels;  ///< the world first
  std::unique_ptr<Communicator> served;
  std::optional<EmulatedClock> clock;
  StepContext context;
  SentRows sent_rows;
  ExchangedSteps exchanged;
  std::deque<PreparedProgram> prepared;  ///< [program]
  struct Unfinished {
    std::int64_t step;
    UpdateScalars update_scalars;
  };
  std::optional<Unfinished> unfinished;  ///< the last step, whose updates are left to the next
  /// Steps whose gradients are on their way to servers, in turn; and at a server their results, which devices
  /// do not know yet.
  struct Ahead {
    StepResult result;
    std::vector<double> metric_sums;
  };
  std::vector<Ahead> ahead;
  std::size_t oldest_ahead = 0, unknown = 0;
  std::vector<double> metric_sums;
  bool keep_rows = false;
  std::vector<TimelineRow> rows;

  State(const Graph& g, std::vector<const Program*> p, Device& d, Communicator& w)
      : graph(g), programs(std::move(p)), device(d), world(w) {}

  const MeshProgram& mine(std::size_t which) const { return programs[which]->at(place); }

  DeviceIndex device_of_rank() const { return DeviceIndex(world.rank()); }

  void find_place() {
    check_rank_count(device_count(*programs[0]), world.size());
    ProgramPlace found = place_of(*programs[0], device_of_rank());
    place = found.mesh;
    coordinate = std::move(found.coordinate);
  }

  /// What all else of a step is ordered with.
  Stream& stream() const { return *lanes[0].second; }

  /// The streams of a program's lanes; those that programs have in common are the same. On GPUs what is not
  /// overlapped is queued behind the computation.
  std::vector<Stream*> streams_of(const Program& program) {
    std::vector<Stream*> streams;
    for (const Lane& lane : program.at(place).lanes) {
      if (device.kind() == DeviceKind::cuda && is_in_turn(lane.kind, program.overlap)) {
        streams.push_back(&stream());
        continue;
      }
      auto found = std::ranges::find(lanes, lane, &std::pair<Lane, std::unique_ptr<Stream>>::first);
      if (found == lanes.end()) found = lanes.emplace(lanes.end(), lane, device.make_stream());
      streams.push_back(found->second.get());
    }
    return streams;
  }

  /// One communicator per axis of each mesh (and of servers that hold states), and the channels of messages;
  /// all ranks take part in every split and in their connections. Who shares a node is what the plan says, so
  /// that it has the same bits wherever its ranks run.
  void make_communicators() {
    world.set_nodes(consecutive_nodes(world.size(), programs[0]->devices_per_node));
    world.set_sends_ahead(programs[0]->overlap != Overlap::none);
    if (programs[0]->servers) served = world.duplicate();
    for (const MeshIndex s : programs[0]->meshes.indices()) split_axes(s);
    if (programs[0]->has_states_at_servers()) split_axes(MeshIndex());
    int most = 0;
    for (const Program* program : programs)
      for (const StageTransfer& transfer : program->transfers) most = std::max(most, transfer.channel);
    channels.push_back(&world);
    for (int channel = 1; channel <= most; ++channel)
      channels.push_back(further_channels.emplace_back(world.duplicate()).get());
    for (std::size_t channel = 0; channel < channels.size(); ++channel)
      channels[channel]->connect(message_pairs(programs, static_cast<int>(channel)));
  }

  void split_axes(MeshIndex s) {
    const DeviceMesh& mesh = programs[0]->at(s).mesh;
    const bool in_mesh = s == place;
    for (int axis = 0; axis < static_cast<int>(mesh.shape.size()); ++axis) {
      const int color = in_mesh ? static_cast<int>(group_of(mesh, {axis}, device_of_rank())[0]) : -1;
      std::unique_ptr<Communicator> group = world.split(color);
      if (in_mesh) axes.push_back(std::move(group));
    }
  }

  void* address(const Buffer& buffer) const {
    const DeviceMemory& of = buffer.space == MemorySpace::device ? *arena : *host_arena;
    return static_cast<std::byte*>(of.data()) + buffer.offset;
  }

  const Buffer& buffer_of(const StateTile& tile) const { return mine(0).buffers[tile.buffer]; }

  /// The inputs in memory from which the device copies while the host goes on.
  const StepInputs& staged(const StepInputs& inputs) {
    assert(inputs.samples.size() == samples.size());
    return *new (input_staging->data()) StepInputs(inputs);
  }

  /// CUDA loads a kernel when it is first queued, and may want an idle device for it, which a device that
  /// waits for a message is not. So each is queued once before the first message. Zeros are indices and
  /// lengths that tensors have; states get their values afterwards.
  void load_kernels() {
    stream().fill_zero(arena->data(), arena->bytes());
    for (PreparedProgram& program : prepared) program.run_kernels(context);
    stream().synchronize();
  }

  /// Without rows: what is predicted and calibrated is a step whose norm does not bind.
  void correct(std::size_t which) {
    StepContext again = context;
    again.pass = Pass::corrections;
    prepared[which].run(again, nullptr);
    for (Communicator* channel : channels) channel->wait_sends(stream());
    stream().synchronize();
  }

  /// Of programs[which], with what `inputs` say; the results are those of that step.
  StepResult run_pass(std::size_t which, Pass pass, const StepInputs& inputs, std::int64_t step) {
    context.begin_s = monotonic_s();
    context.inputs = &staged(inputs);
    context.pass = pass;
    prepared[which].run(context, keep_rows && pass != Pass::rest ? &rows : nullptr);
    for (Communicator* channel : channels) channel->wait_sends(stream());
    const MeshProgram& program = mine(which);
    StepResult result;
    result.step = step;
    result.loss_sum = scalar(program, program.loss);
    if (program.gradient_square_sum >= 0) {
      const auto square_sum = static_cast<float>(scalar(program, program.gradient_square_sum));
      result.gradient_norm = std::sqrt(static_cast<double>(square_sum));
      if (programs[which]->corrects_updates && !clock &&
          norm_binds(gradient_clip(graph), square_sum, inputs.update_scalars.per_loss_scale)) {
        const double begin_s = monotonic_s();
        correct(which);
        result.correction_s = monotonic_s() - begin_s;
      }
    }
    for (std::size_t m = 0; m < program.metrics.size(); ++m)
      metric_sums[m] = scalar(program, program.metrics[m]);
    if (program.lead >= 0) result.lead = scalar(program, program.lead);
    result.metric_sums = metric_sums;
    return result;
  }

  /// A step whose result is known some steps later, by all ranks in the same one.
  std::optional<StepResult> run_ahead(const StepInputs& inputs) {
    Ahead& last = ahead[(oldest_ahead + unknown++) % ahead.size()];
    const StepResult result = run_pass(0, Pass::step, inputs, inputs.step);
    last.result = result;
    std::ranges::copy(metric_sums, last.metric_sums.begin());
    if (unknown < ahead.size()) return std::nullopt;
    return oldest(result);
  }

  /// A device has just read its result.
  std::optional<StepResult> oldest(StepResult read) {
    const Ahead& of = ahead[oldest_ahead];
    oldest_ahead = (oldest_ahead + 1) % ahead.size();
    --unknown;
    if (place >= 0) {
      read.step = of.result.step;
      return read;
    }
    std::ranges::copy(of.metric_sums, metric_sums.begin());
    StepResult held = of.result;
    held.metric_sums = metric_sums;
    return held;
  }

  /// The oldest of steps that are not known; what devices compute on is then that of all of them.
  std::optional<StepResult> finish_oldest() {
    if (unknown == 0) return std::nullopt;
    StepResult result;
    if (place >= 0) {
      const StepInputs inputs = *context.inputs;
      result = run_pass(0, Pass::rest, inputs, 0);
    }
    if (unknown == 1) served->wait_sends(stream());
    return oldest(result);
  }

  double scalar(const MeshProgram& program, BufferIndex buffer) {
    stream().copy_to_host(staging->data(), address(program.buffers[buffer]), 4);
    stream().synchronize();
    float value;
    std::memcpy(&value, staging->data(), 4);
    return value;
  }
};

Executor::Executor(const Graph& graph, std::vector<const Program*> programs, Device& device,
                   Communicator& world, std::uint64_t seed, const CostModel* costs)
    : state_(std::make_unique<State>(graph, std::move(programs), device, world)) {
  State& s = *state_;
  s.find_place();
  s.make_communicators();
  s.lanes.emplace_back(Lane{}, device.make_stream());
  s.staging = device.allocate_staging(64);
  s.input_staging = device.allocate_staging(sizeof(StepInputs));
  if (s.place >= 0) s.samples = step_samples(graph, s.programs, s.place, s.coordinate);
  s.metric_sums.resize(graph.metrics.size());
  s.ahead.resize(static_cast<std::size_t>(most_unknown_steps()) + 1, {{}, s.metric_sums});
  std::int64_t bytes = 0, host_bytes = 0;
  for (std::size_t p = 0; p < s.programs.size(); ++p) {
    bytes = std::max(bytes, s.mine(p).memory.total);
    host_bytes = std::max(host_bytes, s.mine(p).memory.host);
  }
  s.arena = device.allocate(bytes);
  s.host_arena = device.allocate_staging(host_bytes);
  assert((device.kind() == DeviceKind::emulated) == (costs != nullptr));
  if (costs) s.clock.emplace();
  s.context.device = &device;
  s.context.stream = &s.stream();
  s.context.arena = s.arena.get();
  s.context.host_arena = s.host_arena.get();
  s.context.world = &world;
  s.context.channels = &s.channels;
  s.context.axes = &s.axes;
  s.context.served = s.served.get();
  s.context.samples = &s.samples;
  s.context.point = {seed, 0, 0, true};
  s.context.clock = costs ? &*s.clock : nullptr;
  s.context.sent_rows = &s.sent_rows;
  s.context.exchanged = &s.exchanged;
  for (std::size_t p = 0; p < s.programs.size(); ++p)
    s.prepared.emplace_back(graph, *s.programs[p], s.place, s.coordinate, s.device_of_rank(), device,
                            s.streams_of(*s.programs[p]), seed, costs);
  if (device.kind() == DeviceKind::cuda) s.load_kernels();
}

/// Messages to servers and from them may be under way where a run ends early: their memory stays.
Executor::~Executor() {
  if (state_->unknown == 0) return;
  state_->served->cancel();
  static_cast<void>(state_->host_arena.release());
}

std::optional<double> Executor::sent_share_of_rows() const {
  const SentRows& rows = state_->sent_rows;
  if (rows.all == 0) return std::nullopt;
  return static_cast<double>(rows.sent) / static_cast<double>(rows.all);
}

std::int64_t Executor::arena_bytes() const { return state_->arena->bytes(); }

MeshIndex Executor::mesh() const { return state_->place; }

Device& Executor::device() const { return state_->device; }

const StepSamples& Executor::samples() const { return state_->samples; }

int Executor::most_unknown_steps() const {
  const Program& trains = *state_->programs[0];
  return trains.has_states_at_servers() ? trains.staleness + 1 : trains.defers_updates ? 1 : 0;
}

bool Executor::knows_all_steps() const { return state_->unknown == 0 && !state_->unfinished; }

std::vector<StateTile> Executor::state_tiles() const {
  return alpa::state_tiles(state_->graph, *state_->programs[0], state_->device_of_rank());
}

Indexed<StateIndex, int> Executor::state_terms() const {
  return alpa::state_terms(state_->graph, *state_->programs[0]);
}

void Executor::write_state(const StateTile& tile, const void* host) {
  write_state(tile, 0,
              {static_cast<const std::byte*>(host), static_cast<std::size_t>(byte_count(tile.tile))});
}

void Executor::read_state(const StateTile& tile, void* host) {
  read_state(tile, 0, {static_cast<std::byte*>(host), static_cast<std::size_t>(byte_count(tile.tile))});
}

void Executor::write_state(const StateTile& tile, std::int64_t first, std::span<const std::byte> host) {
  const Buffer& buffer = state_->buffer_of(tile);
  std::byte* const to = static_cast<std::byte*>(state_->address(buffer)) + first;
  if (buffer.space == MemorySpace::host) {
    std::ranges::copy(host, to);
    return;
  }
  state_->stream().copy_to_device(to, host.data(), std::ssize(host));
  state_->stream().synchronize();
}

void Executor::read_state(const StateTile& tile, std::int64_t first, std::span<std::byte> host) {
  const Buffer& buffer = state_->buffer_of(tile);
  const std::byte* const from = static_cast<const std::byte*>(state_->address(buffer)) + first;
  if (buffer.space == MemorySpace::host) {
    std::copy_n(from, host.size(), host.begin());
    return;
  }
  state_->stream().copy_to_host(host.data(), from, std::ssize(host));
  state_->stream().synchronize();
}

std::optional<StepResult> Executor::run(const StepInputs& inputs, std::size_t which) {
  State& s = *state_;
  if (s.keep_rows) s.rows.clear();
  // Training alone is ahead: an evaluation knows its result at once.
  if (which == 0 && s.mine(0).lead >= 0) return s.run_ahead(inputs);
  if (!s.programs[which]->defers_updates) {
    assert(!s.unfinished && s.unknown == 0);
    return s.run_pass(which, Pass::step, inputs, inputs.step);
  }
  const auto before = std::exchange(s.unfinished, State::Unfinished{inputs.step, inputs.update_scalars});
  if (!before) {
    s.run_pass(which, Pass::first_step, inputs, inputs.step);
    return std::nullopt;
  }
  StepInputs with_updates = inputs;
  with_updates.update_scalars = before->update_scalars;
  return s.run_pass(which, Pass::step, with_updates, before->step);
}

std::optional<StepResult> Executor::finish() {
  State& s = *state_;
  if (s.programs[0]->has_states_at_servers()) return s.finish_oldest();
  const auto last = std::exchange(s.unfinished, std::nullopt);
  if (!last) return std::nullopt;
  StepInputs inputs = *s.context.inputs;
  inputs.update_scalars = last->update_scalars;
  return s.run_pass(0, Pass::rest, inputs, last->step);
}

void Executor::keep_timeline(bool keep) {
  state_->keep_rows = keep;
  state_->rows.clear();
}

const std::vector<TimelineRow>& Executor::timeline() const { return state_->rows; }

}  // namespace alpa
