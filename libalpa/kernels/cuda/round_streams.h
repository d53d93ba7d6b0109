#pragma once
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>

#include "libalpa/device/device.h"
#include "libalpa/ops/vertex_program.h"

namespace alpa {

/// Streams for the steps of a vertex program: what leads goes on that of the call, the rest, where there is
/// any, on others of the device.
class RoundStreams {
 public:
  RoundStreams(Device& device, const VertexProgram& program) {
    for (const RoundStream which : kRoundStreams) {
      if (!program.uses(which)) continue;
      at(which).number = used_++;
      if (which != RoundStream::leading)
        at(which).other = &device.side_stream(which == RoundStream::early ? 0 : 1);
    }
  }

  /// Before the steps of a call.
  void begin(Stream& of_call) { of_call_ = &of_call; }

  Stream& operator[](RoundStream which) { return at(which).other ? *at(which).other : *of_call_; }
  /// Of those that are used; each has a workspace.
  int number(RoundStream which) const { return at(which).number; }

  /// What `later` gets from now on begins when what `earlier` has got is done.
  void order(RoundStream earlier, RoundStream later) {
    if (number(earlier) < 0 || number(later) < 0) return;
    std::unique_ptr<Event>& reached = at(earlier).reached;
    if (reached)
      (*this)[earlier].record(*reached);
    else
      reached = (*this)[earlier].record();
    (*this)[later].wait(*reached);
  }

 private:
  struct One {
    int number = -1;
    Stream* other = nullptr;
    std::unique_ptr<Event> reached;
  };
  One& at(RoundStream which) { return streams_[static_cast<std::size_t>(which)]; }
  const One& at(RoundStream which) const { return streams_[static_cast<std::size_t>(which)]; }

  std::array<One, std::size(kRoundStreams)> streams_;
  Stream* of_call_ = nullptr;
  int used_ = 0;
};

}  // namespace alpa
