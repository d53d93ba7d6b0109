#pragma once
#include <cstdint>
#include <deque>
#include <memory>

#include "libalpa/device/device.h"

namespace alpa {

/// Messages of a rank to itself: a receive copies, on its stream, from where the send said.
class SelfMessages {
 public:
  std::int64_t send(Stream&, const void* data, std::int64_t bytes);  ///< returns the message's number

  /// Throws Error(run_time) when nothing was sent (nothing ever will be), or when the next message has
  /// another size.
  void receive(Stream&, void* data, std::int64_t bytes);

  /// Later work of the stream starts after all receives. Throws Error(run_time) when a message was sent and
  /// not received, because its receive can only come later on this same rank.
  void wait_sends(Stream&);
  void wait_send(Stream&, std::int64_t message);  ///< likewise for that message alone

 private:
  struct Message {
    const void* data;
    std::int64_t bytes;
    std::unique_ptr<Event> ready;
  };
  std::deque<Message> messages_;
  std::unique_ptr<Event> last_receive_;
  std::int64_t sent_ = 0;
};

}  // namespace alpa
