#include "libalpa/comm/self_messages.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {

std::int64_t SelfMessages::send(Stream& stream, const void* data, std::int64_t bytes) {
  messages_.push_back({data, bytes, stream.record()});
  return ++sent_;
}

void SelfMessages::receive(Stream& stream, void* data, std::int64_t bytes) {
  if (messages_.empty())
    throw Error(ErrorKind::run_time, "a rank receives from itself, but has sent itself nothing");
  const Message& message = messages_.front();
  if (message.bytes != bytes)
    throw Error(ErrorKind::run_time,
                fmt::format("a rank expects {} bytes from itself, but sent {}", bytes, message.bytes));
  stream.wait(*message.ready);
  stream.copy_on_device(data, message.data, bytes);
  messages_.pop_front();
  if (last_receive_) stream.wait(*last_receive_);
  last_receive_ = stream.record();
}

void SelfMessages::wait_sends(Stream& stream) { wait_send(stream, sent_); }

void SelfMessages::wait_send(Stream& stream, std::int64_t message) {
  if (message > sent_ - std::ssize(messages_))
    throw Error(ErrorKind::run_time, "a rank waits for a message to itself that it has not received yet");
  if (last_receive_) stream.wait(*last_receive_);
}

}  // namespace alpa
