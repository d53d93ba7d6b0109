#include <optional>

#include "libalpa/runtime/steps.h"

namespace alpa {
namespace {

Box whole_of(const Shape& shape) { return {shape, Shape(shape.size(), 0)}; }

/// Copies between a tensor and its equal chunks along a dimension (-1: one chunk), laid one after another, as
/// they are sent.
class Chunks {
 public:
  enum class Way { pack, unpack };

  Chunks(Device& device, const TensorType& tensor, DType sent_as, int dimension, int parts, Way way)
      : way_(way) {
    Shape extent = tensor.shape;
    if (dimension < 0)
      parts = 1;
    else
      extent[static_cast<std::size_t>(dimension)] /= parts;
    chunk_bytes_ = element_count(extent) * dtype_bytes(sent_as);
    const Box chunk = whole_of(extent);
    for (int part = 0; part < parts; ++part) {
      Box in_tensor = whole_of(tensor.shape);
      if (dimension >= 0) {
        const auto d = static_cast<std::size_t>(dimension);
        in_tensor.origin[d] = part * extent[d];
      }
      if (way == Way::pack)
        copies_.emplace_back(device, in_tensor, chunk, extent, tensor.dtype, sent_as);
      else
        copies_.emplace_back(device, chunk, in_tensor, extent, sent_as, tensor.dtype);
    }
  }

  void run(const StepContext& rank, void* from, void* to) const {
    auto* chunk = static_cast<std::byte*>(way_ == Way::pack ? to : from);
    for (const BoxCopy& copy : copies_) {
      copy.run(rank, way_ == Way::pack ? from : chunk, way_ == Way::pack ? chunk : to);
      chunk += chunk_bytes_;
    }
  }

 private:
  Way way_;
  std::int64_t chunk_bytes_ = 0;
  std::vector<BoxCopy> copies_;
};

/// This device's part of what it holds whole.
class SliceStep : public PreparedInstruction {
 public:
  SliceStep(const Convert& convert, const StepSite& site)
      : from_(site.mesh, convert.from), to_(site.mesh, convert.to), copy_(copy_of(convert, site)) {}

  void begin(const StepContext& rank) override { copy_.run(rank, from_.at(rank), to_.at(rank)); }
  void run_kernels(const StepContext& rank) override { begin(rank); }

 private:
  BoxCopy copy_of(const Convert& convert, const StepSite& site) const {
    const Shape& part = to_.tile.shape;
    const auto d = static_cast<std::size_t>(convert.step.to_dimension);
    Box from = whole_of(from_.tile.shape);
    from.origin[d] = site.coordinate[convert.step.axis] * part[d];
    return {site.device, from, whole_of(part), part, to_.tile.dtype};
  }

  BufferAddress from_, to_;
  BoxCopy copy_;
};

/// An all-gather of those rows that have an id: stretches of what every device comes to hold, each from the
/// device whose rows they are. The ids are there on all of them.
class RowsInUse {
 public:
  RowsInUse(const Convert& convert, const MeshProgram& program, int devices)
      : axis_(convert.step.axis),
        devices_(devices),
        ids_(program, convert.row_ids),
        ids_on_host_(static_cast<std::size_t>(element_count(ids_.tile.shape))) {
    const TensorType& whole = program.buffers[convert.to].tile;
    row_bytes_ = whole.shape.back() * dtype_bytes(whole.dtype);
    rows_each_ = std::ssize(ids_on_host_) / devices;
    // What was gathered before along other axes has a stretch for each device that it came from.
    pieces_.reserve(static_cast<std::size_t>(device_count(program.mesh.shape)));
  }

  CollectiveCall call(const StepContext& rank, const void* own, void* whole) {
    const std::int64_t bytes_each = rows_each_ * row_bytes_;
    const int own_place = (*rank.axes)[axis_]->rank();
    auto* const to = static_cast<std::byte*>(whole);
    rank.stream->copy_on_device(to + own_place * bytes_each, own, bytes_each);
    rank.stream->copy_to_host(ids_on_host_.data(), ids_.at(rank), ids_.bytes());
    rank.stream->synchronize();
    std::int64_t own_rows = 0;
    pieces_.clear();
    const std::int32_t* ids = ids_on_host_.data();
    for (int device = 0; device < devices_; ++device)
      for (std::int64_t row = 0; row < rows_each_; ++row, ++ids) {
        if (*ids < 0) continue;
        own_rows += device == own_place;
        if (row == 0 || ids[-1] < 0)
          pieces_.push_back({to + device * bytes_each + row * row_bytes_, 0, device});
        pieces_.back().bytes += row_bytes_;
      }
    rank.sent_rows->sent += own_rows;
    rank.sent_rows->all += rows_each_;
    CollectiveCall call{.kind = CollectiveCall::Kind::broadcast_from_owners};
    call.pieces = pieces_;
    return call;
  }

 private:
  std::size_t axis_;
  int devices_;
  BufferAddress ids_;
  std::vector<std::int32_t> ids_on_host_;
  std::int64_t row_bytes_ = 0, rows_each_ = 0;
  std::vector<OwnedPiece> pieces_;
};

class CollectiveStep : public PreparedInstruction {
 public:
  CollectiveStep(const Convert& convert, const StepSite& site)
      : step_(convert.step),
        from_(site.mesh, convert.from),
        to_(site.mesh, convert.to),
        sent_as_(sent_type(step_, to_.tile).dtype),
        from_bytes_(byte_count(sent_type(step_, from_.tile))),
        to_bytes_(byte_count(sent_type(step_, to_.tile))) {
    const int group = site.mesh.mesh.shape[step_.axis];
    if (convert.packed >= 0) {
      packed_.emplace(site.mesh, convert.packed);
      pack_.emplace(site.device, from_.tile, sent_as_, step_.to_dimension, group, Chunks::Way::pack);
    }
    if (convert.unpacked >= 0) unpacked_.emplace(site.mesh, convert.unpacked);
    if (is_unpacked_where_packed(step_)) unpacked_ = packed_;
    if (convert.row_ids >= 0) rows_.emplace(convert, site.mesh, group);
    if (convert.is_served) servers_ = device_count(site.program.servers->mesh.shape);
    if (unpacked_)
      unpack_.emplace(site.device, to_.tile, sent_as_, step_.from_dimension, group, Chunks::Way::unpack);
  }

  void begin(const StepContext& rank) override {
    CollectiveCall call{.dtype = sent_as_, .reduction = step_.maximum ? Reduction::max : Reduction::sum};
    call.from = from_.at(rank);
    call.to = received_at(rank);
    if (pack_) {
      pack_->run(rank, from_.at(rank), packed_->at(rank));
      call.from = packed_->at(rank);
    }
    switch (step_.kind) {
      case ConversionKind::all_reduce:
        if (call.to != call.from) rank.stream->copy_on_device(call.to, call.from, to_bytes_);
        call.kind = CollectiveCall::Kind::all_reduce;
        call.bytes = to_bytes_;
        call.server_ranks = servers_;
        break;
      case ConversionKind::reduce_scatter:
        call.kind = CollectiveCall::Kind::reduce_scatter;
        call.bytes = to_bytes_;
        break;
      case ConversionKind::all_gather:
        if (rows_)
          return partners(rank)->start(*rank.stream, rows_->call(rank, from_.at(rank), to_.at(rank)));
        call.kind = CollectiveCall::Kind::all_gather;
        call.bytes = from_bytes_;
        break;
      case ConversionKind::all_to_all:
        call.kind = CollectiveCall::Kind::all_to_all;
        call.bytes = from_bytes_ / partners(rank)->size();
        break;
      case ConversionKind::slice:
        break;
    }
    partners(rank)->start(*rank.stream, call);
  }

  Progress advance(const StepContext& rank) override {
    const Progress progress = partners(rank)->advance(*rank.stream);
    if (progress == Progress::done && unpack_) unpack_->run(rank, received_at(rank), to_.at(rank));
    return progress;
  }

  Communicator* partners(const StepContext& rank) const override {
    return servers_ > 0 ? rank.served : (*rank.axes)[step_.axis].get();
  }

  void run_kernels(const StepContext& rank) override {
    if (pack_) pack_->run(rank, from_.at(rank), packed_->at(rank));
    if (unpack_) unpack_->run(rank, unpacked_->at(rank), to_.at(rank));
  }

 private:
  void* received_at(const StepContext& rank) const { return unpacked_ ? unpacked_->at(rank) : to_.at(rank); }

  ConversionStep step_;
  BufferAddress from_, to_;
  DType sent_as_;
  std::int64_t from_bytes_, to_bytes_;  ///< as they are sent
  std::optional<BufferAddress> packed_, unpacked_;
  std::optional<Chunks> pack_, unpack_;
  std::optional<RowsInUse> rows_;
  int servers_ = 0;  ///< that help
};

class ServeStep : public PreparedInstruction {
 public:
  ServeStep(const Serve& serve, const StepSite& site) {
    call_.bytes = serve.elements * dtype_bytes(serve.dtype);
    call_.dtype = serve.dtype;
    call_.reduction = serve.maximum ? Reduction::max : Reduction::sum;
    call_.server_ranks = device_count(site.mesh.mesh.shape);
  }

  void begin(const StepContext& rank) override { rank.served->start(*rank.stream, call_); }
  Progress advance(const StepContext& rank) override { return rank.served->advance(*rank.stream); }
  Communicator* partners(const StepContext& rank) const override { return rank.served; }

 private:
  CollectiveCall call_;
};

class OwnerCollectiveStep : public PreparedInstruction {
 public:
  OwnerCollectiveStep(const OwnerCollective& collective, const MeshProgram& program)
      : axis_(static_cast<std::size_t>(collective.axis)) {
    call_.kind = collective.reduces ? CollectiveCall::Kind::reduce_to_owners
                                    : CollectiveCall::Kind::broadcast_from_owners;
    for (const BufferIndex b : collective.owned) {
      const Buffer& buffer = program.buffers[b];
      call_.dtype = buffer.tile.dtype;
      owned_.emplace_back(program, b);
      pieces_.push_back({nullptr, byte_count(buffer.tile), buffer.owner.place});
    }
    call_.pieces = pieces_;
  }

  void begin(const StepContext& rank) override {
    for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].data = owned_[i].at(rank);
    partners(rank)->start(*rank.stream, call_);
  }
  Progress advance(const StepContext& rank) override { return partners(rank)->advance(*rank.stream); }
  Communicator* partners(const StepContext& rank) const override { return (*rank.axes)[axis_].get(); }

 private:
  std::size_t axis_;
  std::vector<BufferAddress> owned_;
  std::vector<OwnedPiece> pieces_;
  CollectiveCall call_;
};

}  // namespace

std::unique_ptr<PreparedInstruction> prepare(const OwnerCollective& collective, const StepSite& site) {
  return std::make_unique<OwnerCollectiveStep>(collective, site.mesh);
}

std::unique_ptr<PreparedInstruction> prepare(const Serve& serve, const StepSite& site) {
  return std::make_unique<ServeStep>(serve, site);
}

std::unique_ptr<PreparedInstruction> prepare(const Convert& convert, const StepSite& site) {
  if (convert.step.kind == ConversionKind::slice) return std::make_unique<SliceStep>(convert, site);
  return std::make_unique<CollectiveStep>(convert, site);
}

}  // namespace alpa
