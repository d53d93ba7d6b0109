#include "libalpa/trainer/prepared_segment.h"

#include <fmt/core.h>

#include <cassert>
#include <chrono>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/trainer/executor.h"

namespace alpa {

class PreparedSegment::Step {
 public:
  virtual ~Step() = default;
  virtual void run(const StepContext&) = 0;
};

namespace {

/// A buffer as this rank sees it.
struct Place {
  std::int64_t offset = 0, slot_bytes = 0;
  TensorType tile;

  Place(const StageProgram& program, int buffer) {
    const Buffer& b = program.buffers[static_cast<std::size_t>(buffer)];
    offset = b.offset;
    slot_bytes = b.residence == Residence::micro_batch ? b.bytes : 0;
    tile = b.tile;
  }
  void* at(const StepContext& rank) const {
    return static_cast<std::byte*>(rank.arena->data()) + offset + rank.slot * slot_bytes;
  }
  std::int64_t bytes() const { return byte_count(tile); }
};

class LoadStep : public PreparedSegment::Step {
 public:
  LoadStep(const Load& load, const StageProgram& program) : kind_(load.kind), to_(program, load.to) {}

  void run(const StepContext& rank) override {
    const StepInputs& in = *rank.inputs;
    const auto micro_batch = [&](std::span<const std::int32_t> all) {
      const std::int64_t count = element_count(to_.tile.shape);
      assert((rank.micro_batch + 1) * count <= static_cast<std::int64_t>(all.size()));
      return static_cast<const void*>(all.data() + rank.micro_batch * count);
    };
    const void* host = nullptr;
    switch (kind_) {
      case InputKind::tokens:
        host = micro_batch(in.tokens);
        break;
      case InputKind::targets:
        host = micro_batch(in.targets);
        break;
      case InputKind::loss_scale:
        host = &in.loss_scale;
        break;
      case InputKind::update_scalars:
        host = in.update_scalars;
        break;
    }
    rank.stream->copy_to_device(to_.at(rank), host, to_.bytes());
  }

 private:
  InputKind kind_;
  Place to_;
};

class ComputeStep : public PreparedSegment::Step {
 public:
  ComputeStep(const Compute& compute, const Graph& graph, const StageProgram& program,
              const std::vector<int>& coordinate, Device& device)
      : accumulate_(compute.accumulate),
        workspace_(compute.workspace >= 0 ? std::optional<Place>(Place(program, compute.workspace))
                                          : std::nullopt) {
    KernelShape shape;
    shape.attributes = compute.attributes;
    const auto add = [&](int b, std::vector<Place>& places, std::vector<Tile>& tiles,
                         std::vector<TensorType>& types) {
      const Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
      places.emplace_back(program, b);
      types.push_back(buffer.tile);
      Tile tile;
      if (buffer.value >= 0) {
        tile.whole = value_of(graph, buffer.value).type.shape;
        tile.origin = tile_origin(tile.whole, buffer.layout, program.mesh.shape, coordinate);
      }
      tiles.push_back(std::move(tile));
    };
    for (const int b : compute.operands) add(b, operand_places_, operands_, shape.operands);
    for (const int b : compute.results) add(b, result_places_, results_, shape.results);
    kernel_ = make_kernel(device, *compute.op, shape);
  }

  void run(const StepContext& rank) override {
    for (std::size_t i = 0; i < operands_.size(); ++i) operands_[i].data = operand_places_[i].at(rank);
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].data = result_places_[i].at(rank);
    const bool adds = accumulate_ == Accumulate::add ||
                      (accumulate_ == Accumulate::add_after_first_micro_batch && rank.micro_batch > 0);
    kernel_->run(*rank.stream, operands_, results_, workspace_ ? workspace_->at(rank) : nullptr, adds,
                 rank.point);
  }

 private:
  Accumulate accumulate_;
  std::optional<Place> workspace_;
  std::vector<Place> operand_places_, result_places_;
  std::vector<Tile> operands_, results_;
  std::unique_ptr<Kernel> kernel_;
};

/// Copies between a tensor and its `parts` equal chunks along a dimension, laid one after another.
void copy_chunks(const StepContext& rank, const TensorType& tensor, void* whole, void* chunks, int dimension,
                 int parts, bool to_chunks) {
  Shape extent = tensor.shape;
  extent[static_cast<std::size_t>(dimension)] /= parts;
  const std::int64_t bytes = element_count(extent) * dtype_bytes(tensor.dtype);
  const Shape zero(tensor.shape.size(), 0);
  for (int part = 0; part < parts; ++part) {
    Box in_whole{tensor.shape, zero};
    in_whole.origin[static_cast<std::size_t>(dimension)] = part * extent[static_cast<std::size_t>(dimension)];
    const Box in_chunk{extent, zero};
    void* chunk = static_cast<std::byte*>(chunks) + part * bytes;
    if (to_chunks)
      copy_box(*rank.device, *rank.stream, whole, in_whole, chunk, in_chunk, extent, tensor.dtype);
    else
      copy_box(*rank.device, *rank.stream, chunk, in_chunk, whole, in_whole, extent, tensor.dtype);
  }
}

class ConvertStep : public PreparedSegment::Step {
 public:
  ConvertStep(const Convert& convert, const StageProgram& program, const std::vector<int>& coordinate)
      : step_(convert.step),
        from_(program, convert.from),
        to_(program, convert.to),
        coordinate_(coordinate[static_cast<std::size_t>(convert.step.axis)]) {
    if (convert.packed >= 0) packed_.emplace(program, convert.packed);
    if (convert.unpacked >= 0) unpacked_.emplace(program, convert.unpacked);
  }

  void run(const StepContext& rank) override {
    Stream& stream = *rank.stream;
    Communicator& group = *(*rank.axes)[static_cast<std::size_t>(step_.axis)];
    const int n = group.size();
    const Reduction reduction = step_.maximum ? Reduction::max : Reduction::sum;
    void* from = from_.at(rank);
    void* to = to_.at(rank);
    if (step_.kind == ConversionKind::slice) {
      Box box{from_.tile.shape, Shape(from_.tile.shape.size(), 0)};
      const std::size_t d = static_cast<std::size_t>(step_.to_dimension);
      box.origin[d] = coordinate_ * to_.tile.shape[d];
      copy_box(*rank.device, stream, from, box, to, {to_.tile.shape, Shape(to_.tile.shape.size(), 0)},
               to_.tile.shape, to_.tile.dtype);
      return;
    }
    if (packed_) {
      copy_chunks(rank, from_.tile, from, packed_->at(rank), step_.to_dimension, n, true);
      from = packed_->at(rank);
    }
    void* arriving = unpacked_ ? unpacked_->at(rank) : to;
    const DType dtype = to_.tile.dtype;
    switch (step_.kind) {
      case ConversionKind::all_reduce:
        stream.copy_on_device(to, from, to_.bytes());
        group.all_reduce(stream, to, element_count(to_.tile.shape), dtype, reduction);
        break;
      case ConversionKind::reduce_scatter:
        group.reduce_scatter(stream, from, to, element_count(to_.tile.shape), dtype, reduction);
        break;
      case ConversionKind::all_gather:
        group.all_gather(stream, from, arriving, from_.bytes());
        break;
      case ConversionKind::all_to_all:
        group.all_to_all(stream, from, arriving, from_.bytes() / n);
        break;
      case ConversionKind::slice:
        break;
    }
    if (unpacked_) copy_chunks(rank, to_.tile, to, arriving, step_.from_dimension, n, false);
  }

 private:
  ConversionStep step_;
  Place from_, to_;
  std::optional<Place> packed_, unpacked_;
  int coordinate_;
};

/// The pieces of a transfer that leave or reach this rank, with where they lie in its tile and in the packed
/// buffer.
struct RankPiece {
  int partner = 0;
  Shape origin_in_tile, extent;
  std::int64_t packed_offset = 0, bytes = 0;
};

std::vector<RankPiece> rank_pieces(const Transfer& transfer, const Program& program, int rank, bool sends) {
  const DeviceMesh& mesh = sends ? transfer.from_mesh : transfer.to_mesh;
  const Shape tile_at = tile_origin(transfer.whole.shape, sends ? transfer.from : transfer.to, mesh.shape,
                                    coordinate_of(mesh, rank));
  std::vector<RankPiece> pieces;
  std::int64_t offset = 0;
  for (const TransferPiece& piece : transfer_pieces(transfer, program.devices_per_node)) {
    if ((sends ? piece.from_device : piece.to_device) != rank) continue;
    RankPiece mine{sends ? piece.to_device : piece.from_device, piece.origin, piece.extent, offset,
                   element_count(piece.extent) * dtype_bytes(transfer.whole.dtype)};
    for (std::size_t d = 0; d < tile_at.size(); ++d) mine.origin_in_tile[d] -= tile_at[d];
    offset += mine.bytes;
    pieces.push_back(std::move(mine));
  }
  return pieces;
}

class SendStep : public PreparedSegment::Step {
 public:
  SendStep(const Send& send, const Program& program, const StageProgram& stage, int rank)
      : from_(stage, send.from),
        packed_(stage, send.packed),
        pieces_(
            rank_pieces(program.transfers[static_cast<std::size_t>(send.transfer)], program, rank, true)) {}

  void run(const StepContext& rank) override {
    if (pieces_.empty()) return;
    // What this buffer held before must have left.
    if (sent_before_) rank.world->wait_sends(*rank.stream);
    sent_before_ = true;
    for (const RankPiece& piece : pieces_) {
      void* packed = static_cast<std::byte*>(packed_.at(rank)) + piece.packed_offset;
      copy_box(*rank.device, *rank.stream, from_.at(rank), {from_.tile.shape, piece.origin_in_tile}, packed,
               {piece.extent, Shape(piece.extent.size(), 0)}, piece.extent, from_.tile.dtype);
      rank.world->send(*rank.stream, packed, piece.bytes, piece.partner);
    }
  }

 private:
  Place from_, packed_;
  std::vector<RankPiece> pieces_;
  bool sent_before_ = false;
};

class ReceiveStep : public PreparedSegment::Step {
 public:
  ReceiveStep(const Receive& receive, const Program& program, const StageProgram& stage, int rank)
      : to_(stage, receive.to),
        packed_(stage, receive.packed),
        pieces_(rank_pieces(program.transfers[static_cast<std::size_t>(receive.transfer)], program, rank,
                            false)) {}

  void run(const StepContext& rank) override {
    for (const RankPiece& piece : pieces_) {
      void* packed = static_cast<std::byte*>(packed_.at(rank)) + piece.packed_offset;
      rank.world->receive(*rank.stream, packed, piece.bytes, piece.partner);
      copy_box(*rank.device, *rank.stream, packed, {piece.extent, Shape(piece.extent.size(), 0)},
               to_.at(rank), {to_.tile.shape, piece.origin_in_tile}, piece.extent, to_.tile.dtype);
    }
  }

 private:
  Place to_, packed_;
  std::vector<RankPiece> pieces_;
};

class GlobalSumStep : public PreparedSegment::Step {
 public:
  GlobalSumStep(const GlobalSum& sum, const StageProgram& program) : packed_(program, sum.packed) {
    for (const int scalar : sum.scalars) scalars_.emplace_back(program, scalar);
  }

  void run(const StepContext& rank) override {
    auto* packed = static_cast<float*>(packed_.at(rank));
    for (std::size_t i = 0; i < scalars_.size(); ++i)
      rank.stream->copy_on_device(packed + i, scalars_[i].at(rank), 4);
    rank.world->all_reduce(*rank.stream, packed, static_cast<std::int64_t>(scalars_.size()), DType::f32,
                           Reduction::sum);
    for (std::size_t i = 0; i < scalars_.size(); ++i)
      rank.stream->copy_on_device(scalars_[i].at(rank), packed + i, 4);
  }

 private:
  Place packed_;
  std::vector<Place> scalars_;
};

class ZeroStep : public PreparedSegment::Step {
 public:
  ZeroStep(const Zero& zero, const StageProgram& program) : to_(program, zero.to) {}
  void run(const StepContext& rank) override { rank.stream->fill_zero(to_.at(rank), to_.bytes()); }

 private:
  Place to_;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

PreparedSegment::PreparedSegment(const Graph& graph, const Program& program, int stage, SegmentKind kind,
                                 const std::vector<int>& coordinate, int rank, Device& device)
    : stage_(stage), segment_(kind) {
  const StageProgram& mine = program.stages[static_cast<std::size_t>(stage)];
  for (const Instruction& instruction : mine.segment(kind)) {
    kinds_.push_back(time_kind(instruction));
    std::unique_ptr<Step> step;
    if (const auto* i = std::get_if<Load>(&instruction)) step = std::make_unique<LoadStep>(*i, mine);
    if (const auto* i = std::get_if<Compute>(&instruction))
      step = std::make_unique<ComputeStep>(*i, graph, mine, coordinate, device);
    if (const auto* i = std::get_if<Convert>(&instruction))
      step = std::make_unique<ConvertStep>(*i, mine, coordinate);
    if (const auto* i = std::get_if<Send>(&instruction))
      step = std::make_unique<SendStep>(*i, program, mine, rank);
    if (const auto* i = std::get_if<Receive>(&instruction))
      step = std::make_unique<ReceiveStep>(*i, program, mine, rank);
    if (const auto* i = std::get_if<GlobalSum>(&instruction))
      step = std::make_unique<GlobalSumStep>(*i, mine);
    if (const auto* i = std::get_if<Zero>(&instruction)) step = std::make_unique<ZeroStep>(*i, mine);
    assert(step && "an instruction without a step");
    steps_.push_back(std::move(step));
  }
}

PreparedSegment::~PreparedSegment() = default;
PreparedSegment::PreparedSegment(PreparedSegment&&) noexcept = default;

void PreparedSegment::run(const StepContext& rank, std::vector<TimelineRow>* rows) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!rows) {
      steps_[i]->run(rank);
      continue;
    }
    const double start = now_s();
    steps_[i]->run(rank);
    rank.stream->synchronize();
    rows->push_back({stage_, segment_, rank.micro_batch, static_cast<int>(i), kinds_[i], start - rank.begin_s,
                     now_s() - start});
  }
}

}  // namespace alpa
