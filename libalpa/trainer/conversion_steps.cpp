#include <optional>

#include "libalpa/trainer/steps.h"

namespace alpa {
namespace {

Box whole_of(const Shape& shape) { return {shape, Shape(shape.size(), 0)}; }

/// Copies between a tensor and its equal chunks along a dimension, laid one after another.
class Chunks {
 public:
  enum class Way { pack, unpack };

  Chunks(const TensorType& tensor, int dimension, int parts, Way way) : way_(way) {
    const auto d = static_cast<std::size_t>(dimension);
    Shape extent = tensor.shape;
    extent[d] /= parts;
    chunk_bytes_ = element_count(extent) * dtype_bytes(tensor.dtype);
    for (int part = 0; part < parts; ++part) {
      Box in_tensor = whole_of(tensor.shape);
      in_tensor.origin[d] = part * extent[d];
      const Box chunk = whole_of(extent);
      copies_.push_back(way == Way::pack ? BoxCopy{in_tensor, chunk, extent, tensor.dtype}
                                         : BoxCopy{chunk, in_tensor, extent, tensor.dtype});
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
class SliceStep : public Step {
 public:
  SliceStep(const Convert& convert, const StageProgram& program, int coordinate)
      : from_(program, convert.from), to_(program, convert.to) {
    const Shape& part = to_.tile.shape;
    copy_ = {whole_of(from_.tile.shape), whole_of(part), part, to_.tile.dtype};
    const auto d = static_cast<std::size_t>(convert.step.to_dimension);
    copy_.from.origin[d] = coordinate * part[d];
  }

  void run(const StepContext& rank) override { copy_.run(rank, from_.at(rank), to_.at(rank)); }

 private:
  Place from_, to_;
  BoxCopy copy_;
};

class CollectiveStep : public Step {
 public:
  CollectiveStep(const Convert& convert, const StageProgram& program)
      : step_(convert.step), from_(program, convert.from), to_(program, convert.to) {
    const int group = program.mesh.shape[static_cast<std::size_t>(step_.axis)];
    if (convert.packed >= 0) {
      packed_.emplace(program, convert.packed);
      pack_.emplace(from_.tile, step_.to_dimension, group, Chunks::Way::pack);
    }
    if (convert.unpacked >= 0) {
      unpacked_.emplace(program, convert.unpacked);
      unpack_.emplace(to_.tile, step_.from_dimension, group, Chunks::Way::unpack);
    }
  }

  void run(const StepContext& rank) override {
    void* from = from_.at(rank);
    void* const to = to_.at(rank);
    if (pack_) {
      pack_->run(rank, from, packed_->at(rank));
      from = packed_->at(rank);
    }
    void* const arriving = unpacked_ ? unpacked_->at(rank) : to;
    communicate(rank, from, arriving);
    if (unpack_) unpack_->run(rank, arriving, to);
  }

 private:
  void communicate(const StepContext& rank, void* from, void* arriving) const {
    Stream& stream = *rank.stream;
    Communicator& group = *(*rank.axes)[static_cast<std::size_t>(step_.axis)];
    const Reduction reduction = step_.maximum ? Reduction::max : Reduction::sum;
    const DType dtype = to_.tile.dtype;
    switch (step_.kind) {
      case ConversionKind::all_reduce:
        stream.copy_on_device(arriving, from, to_.bytes());
        group.all_reduce(stream, arriving, element_count(to_.tile.shape), dtype, reduction);
        break;
      case ConversionKind::reduce_scatter:
        group.reduce_scatter(stream, from, arriving, element_count(to_.tile.shape), dtype, reduction);
        break;
      case ConversionKind::all_gather:
        group.all_gather(stream, from, arriving, from_.bytes());
        break;
      case ConversionKind::all_to_all:
        group.all_to_all(stream, from, arriving, from_.bytes() / group.size());
        break;
      case ConversionKind::slice:
        break;
    }
  }

  ConversionStep step_;
  Place from_, to_;
  std::optional<Place> packed_, unpacked_;
  std::optional<Chunks> pack_, unpack_;
};

}  // namespace

std::unique_ptr<Step> make_step(const Convert& convert, const StepSite& site) {
  if (convert.step.kind == ConversionKind::slice)
    return std::make_unique<SliceStep>(convert, site.stage,
                                       site.coordinate[static_cast<std::size_t>(convert.step.axis)]);
  return std::make_unique<CollectiveStep>(convert, site.stage);
}

}  // namespace alpa
