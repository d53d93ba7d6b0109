#include "libalpa/comm/thread_wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr int kSent = -1;  // the number of all messages that have left

}  // namespace

int ThreadWire::isend(const void* data, std::int64_t bytes, int to, int tag) {
  const auto* const first = static_cast<const std::byte*>(data);
  group_->put_message(rank_, to, tag, Bytes(first, first + bytes));
  return kSent;
}

int ThreadWire::irecv(void* data, std::int64_t bytes, int from, int tag) {
  auto free = std::ranges::find(received_, false, &Received::is_waited_for);
  if (free == received_.end()) free = received_.emplace(received_.end());
  *free = {data, bytes, from, tag, ++started_, true};
  return static_cast<int>(free - received_.begin());
}

bool ThreadWire::test(int message) {
  if (message == kSent) return true;
  Received& received = received_[message];
  const auto comes_before = [&](const Received& other) {
    return other.is_waited_for && other.from == received.from && other.tag == received.tag &&
           other.order < received.order;
  };
  if (std::ranges::any_of(received_, comes_before)) return false;
  const auto bytes = group_->try_take_message(received.from, rank_, received.tag);
  if (!bytes) return false;
  received.is_waited_for = false;
  if (std::ssize(*bytes) != received.bytes)
    throw Error(ErrorKind::run_time, fmt::format("rank {} expects {} bytes from rank {}, which sent {}",
                                                 rank_, received.bytes, received.from, bytes->size()));
  std::copy(bytes->begin(), bytes->end(), static_cast<std::byte*>(received.data));
  return true;
}

void ThreadWire::rest() { seen_ = group_->wait_for_change(seen_, waited_for()); }

void ThreadWire::look() { seen_ = group_->look_for_change(seen_, waited_for()); }

std::vector<int> ThreadWire::waited_for() const {
  std::vector<int> ranks;
  for (const Received& each : received_)
    // Who has left may have sent all that it was to send.
    if (each.is_waited_for && !group_->has_message(each.from, rank_, each.tag)) ranks.push_back(each.from);
  return ranks;
}

}  // namespace alpa
