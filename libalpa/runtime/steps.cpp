#include "libalpa/runtime/steps.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <optional>
#include <thread>

#include "libalpa/kernels/make_kernel.h"

namespace alpa {

BufferAddress::BufferAddress(const MeshProgram& program, BufferIndex buffer)
    : program_(&program), buffer_(buffer) {
  const Buffer& b = program.buffers[buffer];
  offset = b.offset;
  space = b.space;
  slot_bytes = program.stride(buffer);
  slots = b.slots;
  tile = b.tile;
}

std::int64_t BufferAddress::slot(const StepContext& rank) const {
  return program_->slot(buffer_, rank.micro_batch);
}

void* BufferAddress::at(const StepContext& rank) const {
  const DeviceMemory& arena = space == MemorySpace::device ? *rank.arena : *rank.host_arena;
  return static_cast<std::byte*>(arena.data()) + offset + slot(rank) * slot_bytes;
}

/// At what takes its time with no other rank.
constexpr std::chrono::microseconds kLookEvery{20};

void PreparedInstruction::run(const StepContext& rank) {
  begin(rank);
  for (;;) {
    const Progress progress = advance(rank);
    if (progress == Progress::done) return;
    if (progress != Progress::none) continue;
    if (Communicator* const others = partners(rank))
      others->rest(rank.now);
    else
      std::this_thread::sleep_for(kLookEvery);
  }
}

void BoxCopy::run(const StepContext& rank, void* from, void* to) const {
  const Tile operand{from, {}, {}}, result{to, {}, {}};
  kernel_->run(*rank.stream, {&operand, 1}, {&result, 1}, nullptr, false, rank.point);
}

namespace {

class LoadStep : public PreparedInstruction {
 public:
  LoadStep(const Load& load, const StepSite& site) : to_(site.mesh, load.to) {
    const std::vector<Input>& inputs = site.graph.inputs;
    kind_ = inputs[load.input].kind;
    sample_input_ = std::count_if(inputs.begin(), inputs.begin() + load.input,
                                  [](const Input& input) { return input.is_of_samples(); });
  }

  void begin(const StepContext& rank) override {
    switch (kind_) {
      case InputKind::tokens:
      case InputKind::targets:
      case InputKind::vertices:
      case InputKind::data:
        return load_samples(rank);
      case InputKind::loss_scale:
        return rank.stream->copy_to_device(to_.at(rank), &rank.inputs->loss_scale, to_.bytes());
      case InputKind::update_scalars:
        return rank.stream->copy_to_device(to_.at(rank), &rank.inputs->update_scalars, to_.bytes());
    }
  }

 private:
  /// The rows that this device reads; the others of the buffer mean nothing.
  void load_samples(const StepContext& rank) const {
    const InputSamples& own = (*rank.samples)[sample_input_];
    const std::span<const std::byte> samples = rank.inputs->samples[sample_input_];
    assert(std::ssize(samples) == own.bytes());
    rank.stream->copy_to_device(static_cast<std::byte*>(to_.at(rank)) + own.first_row * own.row_bytes,
                                samples.data() + rank.micro_batch * own.micro_batch_bytes(),
                                own.micro_batch_bytes());
  }

  InputKind kind_;
  std::ptrdiff_t sample_input_;  ///< index in StepInputs::samples
  BufferAddress to_;
};

/// The device whose tile a buffer holds.
std::vector<int> home_of(const Buffer& buffer, const DeviceMesh& mesh, std::vector<int> coordinate) {
  if (buffer.ring_hops == 0) return coordinate;
  const auto axis = static_cast<std::size_t>(buffer.ring_axis);
  coordinate[axis] = (coordinate[axis] - buffer.ring_hops + mesh.shape[axis]) % mesh.shape[axis];
  return coordinate;
}

class ComputeStep : public PreparedInstruction {
 public:
  ComputeStep(const Compute& compute, const Graph& graph, const MeshProgram& program,
              const std::vector<int>& coordinate, Device& device)
      : accumulate_(compute.accumulate),
        workspace_(compute.workspace >= 0
                       ? std::optional<BufferAddress>(BufferAddress(program, compute.workspace))
                       : std::nullopt) {
    KernelShape shape;
    shape.attributes = compute.attributes;
    const auto add = [&](BufferIndex b, std::vector<BufferAddress>& places, std::vector<Tile>& tiles,
                         std::vector<TensorType>& types) {
      const Buffer& buffer = program.buffers[b];
      places.emplace_back(program, b);
      types.push_back(buffer.tile);
      Tile tile;
      if (buffer.value >= 0) {
        tile.whole = value_of(graph, buffer.value).type.shape;
        tile.origin = tile_origin(tile.whole, buffer.layout, program.mesh.shape,
                                  home_of(buffer, program.mesh, coordinate));
      }
      tiles.push_back(std::move(tile));
    };
    for (const BufferIndex b : compute.operands) add(b, operand_places_, operands_, shape.operands);
    for (const BufferIndex b : compute.results) add(b, result_places_, results_, shape.results);
    kernel_ = make_kernel(device, *compute.op, shape);
  }

  void begin(const StepContext& rank) override {
    for (std::size_t i = 0; i < operands_.size(); ++i) operands_[i].data = operand_places_[i].at(rank);
    // Numbers of an emulated device mean nothing: where it runs a kernel, it does so for the ids.
    for (std::size_t i = 0; i < results_.size(); ++i)
      results_[i].data =
          rank.clock && result_places_[i].tile.dtype != DType::i32 ? nullptr : result_places_[i].at(rank);
    const bool adds = accumulate_ == Accumulate::add ||
                      (accumulate_ == Accumulate::add_after_first_micro_batch && rank.micro_batch > 0);
    kernel_->run(*rank.stream, operands_, results_, workspace_ ? workspace_->at(rank) : nullptr, adds,
                 rank.point);
  }
  void run_kernels(const StepContext& rank) override { begin(rank); }

 private:
  Accumulate accumulate_;
  std::optional<BufferAddress> workspace_;
  std::vector<BufferAddress> operand_places_, result_places_;
  std::vector<Tile> operands_, results_;
  std::unique_ptr<Kernel> kernel_;
};

class ShiftStep : public PreparedInstruction {
 public:
  ShiftStep(const Shift& shift, const MeshProgram& program) : axis_(static_cast<std::size_t>(shift.axis)) {
    for (const BufferIndex b : shift.from) from_.emplace_back(program, b);
    for (const BufferIndex b : shift.to) to_.emplace_back(program, b);
    passed_.resize(from_.size());
  }

  void begin(const StepContext& rank) override {
    for (std::size_t i = 0; i < from_.size(); ++i)
      passed_[i] = {from_[i].at(rank), to_[i].at(rank), from_[i].bytes()};
    under_way_.start(*partners(rank), *rank.stream, passed_);
  }
  Progress advance(const StepContext& rank) override {
    return under_way_.advance(*partners(rank), *rank.stream);
  }
  Communicator* partners(const StepContext& rank) const override { return (*rank.axes)[axis_].get(); }

 private:
  std::size_t axis_;
  std::vector<BufferAddress> from_, to_;
  std::vector<ShiftBuffer> passed_;
  TensorShift under_way_;
};

class GlobalSumStep : public PreparedInstruction {
 public:
  GlobalSumStep(const GlobalSum& sum, const MeshProgram& program)
      : packed_(program, sum.packed), count_(std::ssize(sum.scalars)) {}

  void begin(const StepContext& rank) override {
    CollectiveCall call;
    call.to = packed_.at(rank);
    call.bytes = count_ * dtype_bytes(call.dtype);
    rank.world->start(*rank.stream, call);
  }
  Progress advance(const StepContext& rank) override { return rank.world->advance(*rank.stream); }
  Communicator* partners(const StepContext& rank) const override { return rank.world; }

 private:
  BufferAddress packed_;
  std::int64_t count_;
};

class ZeroStep : public PreparedInstruction {
 public:
  ZeroStep(const Zero& zero, const MeshProgram& program) : to_(program, zero.to) {}
  void begin(const StepContext& rank) override { rank.stream->fill_zero(to_.at(rank), to_.bytes()); }

 private:
  BufferAddress to_;
};

class CopyStep : public PreparedInstruction {
 public:
  CopyStep(const Copy& copy, const MeshProgram& program) : from_(program, copy.from), to_(program, copy.to) {}
  void begin(const StepContext& rank) override {
    rank.stream->copy_on_device(to_.at(rank), from_.at(rank), to_.bytes());
  }

 private:
  BufferAddress from_, to_;
};

class EmulatedStep : public PreparedInstruction {
 public:
  EmulatedStep(double seconds, std::unique_ptr<PreparedInstruction> kernel)
      : seconds_(seconds), kernel_(std::move(kernel)) {}
  void begin(const StepContext& rank) override {
    const double begin_s = monotonic_s();
    if (kernel_) kernel_->run(rank);
    rank.clock->compute(std::max(seconds_ - (monotonic_s() - begin_s), 0.0));
  }

 private:
  double seconds_;
  std::unique_ptr<PreparedInstruction> kernel_;
};

}  // namespace

std::unique_ptr<PreparedInstruction> prepare(const Load& load, const StepSite& site) {
  return std::make_unique<LoadStep>(load, site);
}
std::unique_ptr<PreparedInstruction> prepare(const Compute& compute, const StepSite& site) {
  return std::make_unique<ComputeStep>(compute, site.graph, site.mesh, site.coordinate, site.device);
}
std::unique_ptr<PreparedInstruction> prepare(const Shift& shift, const StepSite& site) {
  return std::make_unique<ShiftStep>(shift, site.mesh);
}
std::unique_ptr<PreparedInstruction> prepare(const GlobalSum& sum, const StepSite& site) {
  return std::make_unique<GlobalSumStep>(sum, site.mesh);
}
std::unique_ptr<PreparedInstruction> prepare(const Zero& zero, const StepSite& site) {
  return std::make_unique<ZeroStep>(zero, site.mesh);
}
std::unique_ptr<PreparedInstruction> prepare(const Copy& copy, const StepSite& site) {
  return std::make_unique<CopyStep>(copy, site.mesh);
}
std::unique_ptr<PreparedInstruction> prepare_emulated(double seconds,
                                                      std::unique_ptr<PreparedInstruction> kernel) {
  return std::make_unique<EmulatedStep>(seconds, std::move(kernel));
}

}  // namespace alpa
