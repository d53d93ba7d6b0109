// Moves between the memories of a device and of its host.
#include <algorithm>
#include <utility>

#include "libalpa/base/clock.h"
#include "libalpa/runtime/steps.h"

namespace alpa {
namespace {

/// A thread that has other lanes too copies so much at a time; a GPU queues a copy as a whole.
constexpr std::int64_t kPieceOfMove = 1 << 20;

class MoveStep : public PreparedInstruction {
 public:
  MoveStep(const MeshProgram& program, BufferIndex from, BufferIndex to, bool to_device, Device& device)
      : from_(program, from), to_(program, to), to_device_(to_device) {
    piece_ = device.kind() == DeviceKind::cuda ? to_.bytes() : kPieceOfMove;
  }

  void begin(const StepContext&) override { moved_ = 0; }

  Progress advance(const StepContext& rank) override {
    std::byte* const to = static_cast<std::byte*>(to_.at(rank)) + moved_;
    const std::byte* const from = static_cast<std::byte*>(from_.at(rank)) + moved_;
    const std::int64_t bytes = std::min(piece_, to_.bytes() - moved_);
    to_device_ ? rank.stream->copy_to_device(to, from, bytes) : rank.stream->copy_to_host(to, from, bytes);
    moved_ += bytes;
    return moved_ == to_.bytes() ? Progress::done : Progress::some;
  }

 private:
  BufferAddress from_, to_;
  bool to_device_;
  std::int64_t piece_, moved_ = 0;
};

class EmulatedMoveStep : public PreparedInstruction {
 public:
  EmulatedMoveStep(double seconds, std::shared_ptr<EmulatedClock> lane)
      : seconds_(seconds), lane_(std::move(lane)) {}

  void begin(const StepContext&) override { end_s_ = lane_->begin(seconds_); }
  Progress advance(const StepContext&) override {
    if (monotonic_s() < end_s_) return Progress::none;
    lane_->end();
    return Progress::done;
  }

 private:
  double seconds_, end_s_ = 0;
  std::shared_ptr<EmulatedClock> lane_;
};

}  // namespace

std::unique_ptr<PreparedInstruction> prepare(const Fetch& fetch, const StepSite& site) {
  return std::make_unique<MoveStep>(site.mesh, fetch.from, fetch.to, true, site.device);
}
std::unique_ptr<PreparedInstruction> prepare(const Offload& offload, const StepSite& site) {
  return std::make_unique<MoveStep>(site.mesh, offload.from, offload.to, false, site.device);
}
std::unique_ptr<PreparedInstruction> prepare_emulated_move(double seconds,
                                                           std::shared_ptr<EmulatedClock> lane) {
  return std::make_unique<EmulatedMoveStep>(seconds, std::move(lane));
}

}  // namespace alpa
