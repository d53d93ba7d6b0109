#include <algorithm>
#include <cassert>
#include <map>
#include <span>

#include "libalpa/runtime/steps.h"

namespace alpa {
namespace {

/// So many receives of a transfer are under way at once, in its order: from one sender, so that it need not
/// wait to be asked for the next, and of all, for those that come from several at once. Those after them
/// leave the network to what goes first. (With eight from one, messages share it: chains of 10 MiB between
/// emulated hosts of 1 Gbit/s take 1.55 T in place of 1.20, and their order does nothing.) Where a receive
/// holds up what comes after it, there is one, and what has arrived is passed on before the next: ranks that
/// pass on to each other would else wait in a circle.
constexpr std::size_t kReceivesFromOne = 2, kReceivesOfAll = 4;

/// A box of a transfer in packed memory, and where it lies in this rank's tile.
struct PackedBox {
  std::int64_t offset = 0;  ///< in packed memory
  Box in_tile;
  Shape extent;
};

/// A message of this rank, as a part of packed memory.
struct Message {
  int partner = 0;
  std::int64_t offset = 0, bytes = 0;
  int after = -1;  ///< of those that this rank receives, the one that brings what it passes on
};

/// A rank's end of a transfer: the boxes that it packs or unpacks, and its messages.
struct TransferEnd {
  BufferAddress packed;
  std::vector<PackedBox> boxes;
  std::vector<Message> sent, received;
  std::size_t channel;

  TransferEnd(const StepSite& site, int transfer, BufferIndex packed_buffer, bool sends)
      : TransferEnd(site, site.program.transfers[transfer], packed_buffer, sends) {}

  Communicator& ranks(const StepContext& rank) const { return *(*rank.channels)[channel]; }

  void* packed_at(const StepContext& rank, std::int64_t offset) const {
    return static_cast<std::byte*>(packed.at(rank)) + offset;
  }

  std::int64_t send(const StepContext& rank, const Message& message) const {
    return ranks(rank).send(*rank.stream, packed_at(rank, message.offset), message.bytes, message.partner);
  }

 private:
  TransferEnd(const StepSite& site, const StageTransfer& transfer, BufferIndex packed_buffer, bool sends)
      : packed(site.mesh, packed_buffer), channel(static_cast<std::size_t>(transfer.channel)) {
    const DeviceMesh& mesh = sends ? transfer.from_mesh : transfer.to_mesh;
    const ShardingSpec& layout = sends ? transfer.from : transfer.to;
    const std::int64_t element_bytes = dtype_bytes(transfer.whole.dtype);
    const Shape tile = tile_shape(transfer.whole.shape, layout, mesh.shape),
                tile_at =
                    tile_origin(transfer.whole.shape, layout, mesh.shape, coordinate_of(mesh, site.rank));
    const std::vector<TransferMessage>& messages = transfer.route.messages;
    std::map<int, std::int64_t> place_of_task;
    std::map<int, int> number_of_received;  // by message
    std::int64_t end = 0;
    const auto place = [&](int t) {
      const auto [found, is_new] = place_of_task.try_emplace(t, end);
      if (!is_new) return found->second;
      const TransferTask& task = transfer.route.tasks[t];
      Box in_tile{tile, task.origin};
      for (std::size_t d = 0; d < tile_at.size(); ++d) in_tile.origin[d] -= tile_at[d];
      boxes.push_back({end, std::move(in_tile), task.extent});
      end += element_count(task.extent) * element_bytes;
      return found->second;
    };
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const TransferMessage& message = messages[m];
      const bool from_here = message.from == site.rank && message.is_passed_on() != sends,
                 to_here = message.to == site.rank && !sends;
      if (!from_here && !to_here) continue;
      const std::int64_t offset = place(message.task) + message.begin * element_bytes,
                         bytes = message.elements() * element_bytes;
      if (to_here) {
        number_of_received[static_cast<int>(m)] = static_cast<int>(received.size());
        received.push_back({message.from, offset, bytes});
      } else {
        sent.push_back({message.to, offset, bytes, sends ? -1 : number_of_received.at(message.after)});
      }
    }
    assert(end <= packed.slot_bytes);
  }
};

/// [box] Between the tile and packed memory.
std::vector<BoxCopy> copies_of(const TransferEnd& end, const StepSite& site, DType dtype, bool packs) {
  std::vector<BoxCopy> copies;
  for (const PackedBox& box : end.boxes) {
    const Box packed{box.extent, Shape(box.extent.size(), 0)};
    copies.emplace_back(site.device, packs ? box.in_tile : packed, packs ? packed : box.in_tile, box.extent,
                        dtype);
  }
  return copies;
}

class SendStep : public PreparedInstruction {
 public:
  SendStep(const Send& send, const StepSite& site)
      : end_(site, send.transfer, send.packed, true),
        tile_(site.mesh, send.from),
        copies_(copies_of(end_, site, tile_.tile.dtype, true)) {
    leaving_.resize(static_cast<std::size_t>(end_.packed.slots) * end_.sent.size());
  }

  void begin(const StepContext&) override { left_ = 0; }

  Progress advance(const StepContext& rank) override {
    Communicator& ranks = end_.ranks(rank);
    const std::size_t count = end_.sent.size();
    const auto slot =
        std::span(leaving_).subspan(static_cast<std::size_t>(end_.packed.slot(rank)) * count, count);
    for (; left_ < count; ++left_) {  // what the slot held may still be on its way
      const Leaving& before = slot[left_];
      if (before.step == rank.point.step && !ranks.has_left(*rank.stream, before.message))
        return Progress::none;
    }
    run_kernels(rank);
    for (std::size_t m = 0; m < count; ++m) slot[m] = {rank.point.step, end_.send(rank, end_.sent[m])};
    return Progress::done;
  }

  Communicator* partners(const StepContext& rank) const override { return &end_.ranks(rank); }

  void run_kernels(const StepContext& rank) override {
    for (std::size_t b = 0; b < copies_.size(); ++b)
      copies_[b].run(rank, tile_.at(rank), end_.packed_at(rank, end_.boxes[b].offset));
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

/// Takes in what comes and passes on what others of the mesh need of it. It is done when that has left too,
/// so that the memory is free.
class ReceiveStep : public PreparedInstruction {
 public:
  ReceiveStep(const Receive& receive, const StepSite& site)
      : end_(site, receive.transfer, receive.packed, false),
        arriving_(end_.received.size()),
        leaving_(end_.sent.size()) {}

  void begin(const StepContext& rank) override {
    started_ = arrived_ = passed_on_ = left_ = 0;
    start(rank);
  }

  Progress advance(const StepContext& rank) override {
    Communicator& ranks = end_.ranks(rank);
    bool has_moved = false;
    for (; arrived_ < end_.received.size() && ranks.has_arrived(*rank.stream, arriving_[arrived_]);
         has_moved = true) {
      ++arrived_;
      pass_on(rank);
      start(rank);
    }
    for (; left_ < passed_on_ && ranks.has_left(*rank.stream, leaving_[left_]); has_moved = true) ++left_;
    if (arrived_ == end_.received.size() && left_ == end_.sent.size()) return Progress::done;
    return has_moved ? Progress::some : Progress::none;
  }

  Communicator* partners(const StepContext& rank) const override { return &end_.ranks(rank); }

 private:
  bool may_start(const Communicator& ranks) const {
    const std::size_t at_once = ranks.receives_beside_others() ? kReceivesOfAll : 1;
    if (started_ == end_.received.size() || started_ >= arrived_ + at_once) return false;
    std::size_t from_one = 0;
    for (std::size_t m = arrived_; m < started_; ++m)
      from_one += end_.received[m].partner == end_.received[started_].partner ? 1 : 0;
    return from_one < kReceivesFromOne;
  }

  void start(const StepContext& rank) {
    for (; may_start(end_.ranks(rank)); ++started_) {
      const Message& message = end_.received[started_];
      arriving_[started_] = end_.ranks(rank).start_receive(*rank.stream, end_.packed_at(rank, message.offset),
                                                           message.bytes, message.partner);
    }
  }

  void pass_on(const StepContext& rank) {
    for (; passed_on_ < end_.sent.size() && end_.sent[passed_on_].after < static_cast<int>(arrived_);
         ++passed_on_)
      leaving_[passed_on_] = end_.send(rank, end_.sent[passed_on_]);
  }

  TransferEnd end_;
  std::vector<std::int64_t> arriving_, leaving_;  ///< [message] its number
  std::size_t started_ = 0, arrived_ = 0;         ///< of those that are received
  std::size_t passed_on_ = 0, left_ = 0;          ///< of those that are sent
};

class UnpackStep : public PreparedInstruction {
 public:
  UnpackStep(const Unpack& unpack, const StepSite& site)
      : end_(site, unpack.transfer, unpack.packed, false),
        tile_(site.mesh, unpack.to),
        copies_(copies_of(end_, site, tile_.tile.dtype, false)) {}

  void begin(const StepContext& rank) override {
    for (std::size_t b = 0; b < copies_.size(); ++b)
      copies_[b].run(rank, end_.packed_at(rank, end_.boxes[b].offset), tile_.at(rank));
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
