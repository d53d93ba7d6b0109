#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "libalpa/runtime/steps.h"

namespace alpa {

/// What a rank does for one transfer, with memory of its own: the instructions that training runs.
class OneTransfer {
 public:
  OneTransfer(const Transfer& transfer, TransferRoute route, Device& device, Communicator& world,
              int ranks_on_host)
      : device_(device), world_(world), stream_(device.make_stream()), channels_{&world} {
    StageTransfer of_stages;
    static_cast<Transfer&>(of_stages) = transfer;
    of_stages.route = std::move(route);
    program_.devices_per_node = ranks_on_host;
    program_.transfers = {std::move(of_stages)};
    const DeviceIndex rank(world.rank());
    const auto is_on = [&](const DeviceMesh& mesh) {
      return rank >= mesh.first_device && rank < mesh.first_device + device_count(mesh.shape);
    };
    sends_ = is_on(transfer.from_mesh);
    if (!sends_ && !is_on(transfer.to_mesh)) return;
    mesh_.mesh = sends_ ? transfer.from_mesh : transfer.to_mesh;
    coordinate_ = coordinate_of(mesh_.mesh, rank);
    layout_ = sends_ ? transfer.from : transfer.to;
    const TensorType tile = tile_type(transfer.whole, layout_, mesh_.mesh.shape);
    const std::int64_t bytes = byte_count(tile);
    for (const std::int64_t offset : {std::int64_t{0}, bytes}) {
      Buffer buffer;
      buffer.tile = tile;
      buffer.bytes = bytes;
      buffer.offset = offset;
      mesh_.buffers.push_back(buffer);
    }
    arena_ = device.allocate(2 * bytes);
    context_.device = &device;
    context_.stream = stream_.get();
    context_.arena = arena_.get();
    context_.channels = &channels_;
    const StepSite site{graph_, program_, mesh_, coordinate_, rank, device};
    const BufferIndex whole(0), packed(1);
    if (sends_) {
      steps_.push_back(prepare(Send{0, whole, packed}, site));
    } else {
      steps_.push_back(prepare(Receive{0, packed}, site));
      steps_.push_back(prepare(Unpack{0, packed, whole}, site));
    }
    for_each_element([&](float& element, std::int64_t number) { element = sends_ ? value_of(number) : -1; });
  }

  void run() {
    ++context_.point.step;
    for (const auto& step : steps_) step->run(context_);
    world_.wait_sends(*stream_);
  }

  bool has_it() const {
    bool all = true;
    for_each_element(
        [&](const float& element, std::int64_t number) { all = all && element == value_of(number); });
    return all;
  }

 private:
  static float value_of(std::int64_t number) { return static_cast<float>(number % 16'000'000); }

  /// With its number in the whole tensor.
  template <class Visit>
  void for_each_element(Visit visit) const {
    if (steps_.empty()) return;
    const Shape& whole = program_.transfers[0].whole.shape;
    const Shape at = tile_origin(whole, layout_, mesh_.mesh.shape, coordinate_),
                tile = mesh_.buffers[BufferIndex(0)].tile.shape;
    auto* elements = static_cast<float*>(arena_->data());
    for (std::int64_t e = 0; e < element_count(tile); ++e) {
      std::int64_t number = 0, left = e, stride = 1;
      for (std::size_t d = whole.size(); d-- > 0; left /= tile[d], stride *= whole[d])
        number += (at[d] + left % tile[d]) * stride;
      visit(elements[e], number);
    }
  }

  Device& device_;
  Communicator& world_;
  std::unique_ptr<Stream> stream_;
  std::vector<Communicator*> channels_;
  Graph graph_;
  Program program_;
  MeshProgram mesh_;
  std::vector<int> coordinate_;
  ShardingSpec layout_;
  std::unique_ptr<DeviceMemory> arena_;
  StepContext context_;
  std::vector<std::unique_ptr<PreparedInstruction>> steps_;
  bool sends_ = false;
};

}  // namespace alpa
