#include <cassert>
#include <map>
#include <span>

#include "libalpa/runtime/steps.h"

namespace alpa {
namespace {

/// The part of a transfer that leaves or reaches this rank in one message, between its tile and packed
/// memory, where messages of the same content have one place.
struct Message {
  int partner = 0;
  std::int64_t packed_offset = 0, bytes = 0;
  bool is_first = true;  ///< of that place
  Box in_tile;
  Shape extent;
};

std::vector<Message> messages_of(const Transfer& transfer, const StepSite& site, bool sends) {
  const DeviceMesh& mesh = sends ? transfer.from_mesh : transfer.to_mesh;
  const ShardingSpec& layout = sends ? transfer.from : transfer.to;
  const TensorType tile = tile_type(transfer.whole, layout, mesh.shape);
  const Shape tile_at = tile_origin(transfer.whole.shape, layout, mesh.shape, coordinate_of(mesh, site.rank));
  std::vector<Message> messages;
  std::map<Shape, std::int64_t> places;  // by origin: tiles that are not equal do not overlap
  std::int64_t offset = 0;
  for (const TransferPiece& piece : transfer_pieces(transfer, site.program.devices_per_node)) {
    if ((sends ? piece.from_device : piece.to_device) != site.rank) continue;
    Box in_tile{tile.shape, piece.origin};
    for (std::size_t d = 0; d < tile_at.size(); ++d) in_tile.origin[d] -= tile_at[d];
    const std::int64_t bytes = element_count(piece.extent) * dtype_bytes(transfer.whole.dtype);
    const auto [place, is_first] = places.try_emplace(piece.origin, offset);
    messages.push_back({sends ? piece.to_device : piece.from_device, place->second, bytes, is_first,
                        std::move(in_tile), piece.extent});
    if (is_first) offset += bytes;
  }
  assert(offset <= byte_count(tile));
  return messages;
}

/// A rank's end of a transfer: packed memory, and the messages between that and its partners.
struct TransferEnd {
  BufferAddress packed;
  std::vector<Message> messages;
  std::size_t channel;

  TransferEnd(const StepSite& site, int transfer, BufferIndex packed_buffer, bool sends)
      : TransferEnd(site, site.program.transfers[transfer], packed_buffer, sends) {}
  TransferEnd(const StepSite& site, const StageTransfer& transfer, BufferIndex packed_buffer, bool sends)
      : packed(site.mesh, packed_buffer),
        messages(messages_of(transfer, site, sends)),
        channel(static_cast<std::size_t>(transfer.channel)) {}

  Communicator& ranks(const StepContext& rank) const { return *(*rank.channels)[channel]; }

  void* packed_at(const StepContext& rank, const Message& message) const {
    return static_cast<std::byte*>(packed.at(rank)) + message.packed_offset;
  }
};

/// [message] Between the tile and packed memory.
std::vector<BoxCopy> copies_of(const TransferEnd& end, const StepSite& site, DType dtype, bool packs) {
  std::vector<BoxCopy> copies;
  for (const Message& message : end.messages) {
    const Box packed{message.extent, Shape(message.extent.size(), 0)};
    copies.emplace_back(site.device, packs ? message.in_tile : packed, packs ? packed : message.in_tile,
                        message.extent, dtype);
  }
  return copies;
}

class SendStep : public PreparedInstruction {
 public:
  SendStep(const Send& send, const StepSite& site)
      : end_(site, send.transfer, send.packed, true),
        tile_(site.mesh, send.from),
        copies_(copies_of(end_, site, tile_.tile.dtype, true)) {
    leaving_.resize(static_cast<std::size_t>(end_.packed.slots) * end_.messages.size());
  }

  void begin(const StepContext&) override { left_ = 0; }

  Progress advance(const StepContext& rank) override {
    Communicator& ranks = end_.ranks(rank);
    const std::size_t count = end_.messages.size();
    const auto slot =
        std::span(leaving_).subspan(static_cast<std::size_t>(end_.packed.slot(rank)) * count, count);
    for (; left_ < count; ++left_) {  // what the slot held may still be on its way
      const Leaving& before = slot[left_];
      if (before.step == rank.point.step && !ranks.has_left(*rank.stream, before.message))
        return Progress::none;
    }
    for (std::size_t m = 0; m < count; ++m) {
      const Message& message = end_.messages[m];
      void* packed = end_.packed_at(rank, message);
      if (message.is_first) copies_[m].run(rank, tile_.at(rank), packed);
      slot[m] = {rank.point.step, ranks.send(*rank.stream, packed, message.bytes, message.partner)};
    }
    return Progress::done;
  }

  Communicator* partners(const StepContext& rank) const override { return &end_.ranks(rank); }

  void run_kernels(const StepContext& rank) override {
    for (std::size_t m = 0; m < copies_.size(); ++m)
      copies_[m].run(rank, tile_.at(rank), end_.packed_at(rank, end_.messages[m]));
  }

 private:
  struct Leaving {
    std::int64_t step = -1;  ///< all that was sent in earlier steps has left
    std::int64_t message = 0;
  };
  TransferEnd end_;
  BufferAddress tile_;
  std::vector<BoxCopy> copies_;
  std::vector<Leaving> leaving_;  ///< [slot][message]
  std::size_t left_ = 0;          ///< of the slot's messages before
};

class ReceiveStep : public PreparedInstruction {
 public:
  ReceiveStep(const Receive& receive, const StepSite& site)
      : end_(site, receive.transfer, receive.packed, false), arriving_(end_.messages.size()) {}

  void begin(const StepContext& rank) override {
    arrived_ = 0;
    for (std::size_t m = 0; m < arriving_.size(); ++m) {
      const Message& message = end_.messages[m];
      arriving_[m] = end_.ranks(rank).start_receive(*rank.stream, end_.packed_at(rank, message),
                                                    message.bytes, message.partner);
    }
  }

  Progress advance(const StepContext& rank) override {
    const std::size_t before = arrived_;
    for (; arrived_ < arriving_.size(); ++arrived_)
      if (!end_.ranks(rank).has_arrived(*rank.stream, arriving_[arrived_]))
        return arrived_ > before ? Progress::some : Progress::none;
    return Progress::done;
  }

  Communicator* partners(const StepContext& rank) const override { return &end_.ranks(rank); }

 private:
  TransferEnd end_;
  std::vector<std::int64_t> arriving_;  ///< [message] its number
  std::size_t arrived_ = 0;
};

class UnpackStep : public PreparedInstruction {
 public:
  UnpackStep(const Unpack& unpack, const StepSite& site)
      : end_(site, unpack.transfer, unpack.packed, false),
        tile_(site.mesh, unpack.to),
        copies_(copies_of(end_, site, tile_.tile.dtype, false)) {}

  void begin(const StepContext& rank) override {
    for (std::size_t m = 0; m < copies_.size(); ++m)
      copies_[m].run(rank, end_.packed_at(rank, end_.messages[m]), tile_.at(rank));
  }
  void run_kernels(const StepContext& rank) override { begin(rank); }

 private:
  TransferEnd end_;
  BufferAddress tile_;
  std::vector<BoxCopy> copies_;
};

}  // namespace

std::unique_ptr<PreparedInstruction> prepare(const Send& send, const StepSite& site) {
  return std::make_unique<SendStep>(send, site);
}
std::unique_ptr<PreparedInstruction> prepare(const Receive& receive, const StepSite& site) {
  return std::make_unique<ReceiveStep>(receive, site);
}
std::unique_ptr<PreparedInstruction> prepare(const Unpack& unpack, const StepSite& site) {
  return std::make_unique<UnpackStep>(unpack, site);
}

}  // namespace alpa
