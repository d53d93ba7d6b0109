#include "libalpa/trainer/steps.h"

namespace alpa {
namespace {

/// The part of a transfer that leaves or reaches this rank in one message, between its tile and packed
/// memory.
struct Message {
  int partner = 0;
  std::int64_t packed_offset = 0, bytes = 0;
  BoxCopy copy;
};

std::vector<Message> messages_of(const Transfer& transfer, const StepSite& site, const TensorType& tile,
                                 bool sends) {
  const DeviceMesh& mesh = sends ? transfer.from_mesh : transfer.to_mesh;
  const Shape tile_at = tile_origin(transfer.whole.shape, sends ? transfer.from : transfer.to, mesh.shape,
                                    coordinate_of(mesh, site.rank));
  std::vector<Message> messages;
  std::int64_t offset = 0;
  for (const TransferPiece& piece : transfer_pieces(transfer, site.program.devices_per_node)) {
    if ((sends ? piece.from_device : piece.to_device) != site.rank) continue;
    Box in_tile{tile.shape, piece.origin};
    for (std::size_t d = 0; d < tile_at.size(); ++d) in_tile.origin[d] -= tile_at[d];
    const Box packed{piece.extent, Shape(piece.extent.size(), 0)};
    const std::int64_t bytes = element_count(piece.extent) * dtype_bytes(transfer.whole.dtype);
    messages.push_back({sends ? piece.to_device : piece.from_device, offset, bytes,
                        sends ? BoxCopy{in_tile, packed, piece.extent, tile.dtype}
                              : BoxCopy{packed, in_tile, piece.extent, tile.dtype}});
    offset += bytes;
  }
  return messages;
}

class SendStep : public Step {
 public:
  SendStep(const Send& send, const StepSite& site)
      : from_(site.stage, send.from),
        packed_(site.stage, send.packed),
        messages_(messages_of(site.program.transfers[static_cast<std::size_t>(send.transfer)], site,
                              from_.tile, true)) {}

  void run(const StepContext& rank) override {
    if (messages_.empty()) return;
    if (sent_in_ == *rank.send_round) {  // what the packed memory held may still be leaving
      rank.world->wait_sends(*rank.stream);
      ++*rank.send_round;
    }
    sent_in_ = *rank.send_round;
    for (const Message& message : messages_) {
      void* packed = static_cast<std::byte*>(packed_.at(rank)) + message.packed_offset;
      message.copy.run(rank, from_.at(rank), packed);
      rank.world->send(*rank.stream, packed, message.bytes, message.partner);
    }
  }

 private:
  Place from_, packed_;
  std::vector<Message> messages_;
  std::int64_t sent_in_ = -1;  ///< round of the last send
};

class ReceiveStep : public Step {
 public:
  ReceiveStep(const Receive& receive, const StepSite& site)
      : to_(site.stage, receive.to),
        packed_(site.stage, receive.packed),
        messages_(messages_of(site.program.transfers[static_cast<std::size_t>(receive.transfer)], site,
                              to_.tile, false)) {}

  void run(const StepContext& rank) override {
    for (const Message& message : messages_) {
      void* packed = static_cast<std::byte*>(packed_.at(rank)) + message.packed_offset;
      rank.world->receive(*rank.stream, packed, message.bytes, message.partner);
      message.copy.run(rank, packed, to_.at(rank));
    }
  }

 private:
  Place to_, packed_;
  std::vector<Message> messages_;
};

}  // namespace

std::unique_ptr<Step> make_step(const Send& send, const StepSite& site) {
  return std::make_unique<SendStep>(send, site);
}
std::unique_ptr<Step> make_step(const Receive& receive, const StepSite& site) {
  return std::make_unique<ReceiveStep>(receive, site);
}

}  // namespace alpa
