#include "libalpa/comm/thread_group.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void ThreadWorld::finish(int rank) {
  const std::lock_guard lock(mutex_);
  finished_[rank] = 1;
  notify();
}

void ThreadWorld::fail(int rank, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (first_failure_) return;
  failure_ = fmt::format("rank {} has failed: {}", rank, text_of(failure));
  first_failure_ = std::move(failure);
  notify();
}

void ThreadWorld::rethrow_first_failure() const {
  const std::lock_guard lock(mutex_);
  if (first_failure_) std::rethrow_exception(first_failure_);
}

void ThreadWorld::throw_if_failed() const {
  if (first_failure_) throw Error(ErrorKind::peer, failure_);
}

void ThreadWorld::notify() {
  ++changes_;
  changed_.notify_all();
}

template <class Reached>
void ThreadWorld::wait(std::unique_lock<std::mutex>& lock, const std::vector<int>& needed, Reached reached) {
  while (!reached()) {
    throw_if_hopeless(needed);
    changed_.wait(lock);
  }
}

void ThreadWorld::throw_if_hopeless(const std::vector<int>& needed) const {
  throw_if_failed();
  for (const int rank : needed)
    if (finished_[rank])
      throw Error(ErrorKind::peer, fmt::format("rank {} has left while others wait for it", rank));
}

ThreadGroup::ThreadGroup(ThreadWorld& world, std::vector<int> members)
    : world_(world),
      members_(std::move(members)),
      posted_{std::vector<Bytes>(members_.size()), std::vector<Bytes>(members_.size())} {}

void ThreadGroup::meet() {
  std::unique_lock lock(world_.mutex_);
  world_.throw_if_failed();
  const std::int64_t meeting = meetings_;
  if (++arrived_ == size()) {
    arrived_ = 0;
    ++meetings_;
    world_.notify();
    return;
  }
  try {
    world_.wait(lock, members_, [&] { return meetings_ != meeting; });
  } catch (const Error&) {
    --arrived_;  // a caller that goes on must not be counted twice
    throw;
  }
}

const std::vector<Bytes>& ThreadGroup::post(int rank, std::int64_t round, const Bytes& contribution) {
  std::vector<Bytes>& posted = posted_[round % 2];
  posted[rank] = contribution;
  meet();
  return posted;
}

void ThreadGroup::put_message(int from, int to, int tag, Bytes message) {
  const std::lock_guard lock(world_.mutex_);
  world_.throw_if_failed();
  messages_[{from, to, tag}].push_back(std::move(message));
  world_.notify();
}

bool ThreadGroup::has_message(int from, int to, int tag) {
  const std::lock_guard lock(world_.mutex_);
  return !messages_[{from, to, tag}].empty();
}

std::optional<Bytes> ThreadGroup::try_take_message(int from, int to, int tag) {
  const std::lock_guard lock(world_.mutex_);
  std::deque<Bytes>& waiting = messages_[{from, to, tag}];
  if (waiting.empty()) return std::nullopt;
  std::optional<Bytes> message = std::move(waiting.front());
  waiting.pop_front();
  return message;
}

std::vector<int> ThreadGroup::in_world(const std::vector<int>& ranks) const {
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(members_[rank]);
  return members;
}

std::int64_t ThreadGroup::wait_for_change(std::int64_t seen, const std::vector<int>& needed) {
  const std::vector<int> members = in_world(needed);
  std::unique_lock lock(world_.mutex_);
  world_.wait(lock, members, [&] { return world_.changes_ != seen; });
  return world_.changes_;
}

std::int64_t ThreadGroup::look_for_change(std::int64_t seen, const std::vector<int>& needed) {
  const std::vector<int> members = in_world(needed);
  const std::lock_guard lock(world_.mutex_);
  if (world_.changes_ == seen) world_.throw_if_hopeless(members);
  return world_.changes_;
}

std::shared_ptr<ThreadGroup> ThreadGroup::subgroup(std::int64_t round, const std::vector<int>& ranks) {
  const std::lock_guard lock(world_.mutex_);
  const auto [entry, is_new] = forming_.try_emplace({round, ranks.front()});
  Forming& forming = entry->second;
  if (is_new) {
    forming = {std::make_shared<ThreadGroup>(world_, in_world(ranks)), ranks.size()};
  }
  const std::shared_ptr<ThreadGroup> group = forming.group;
  if (--forming.missing == 0) forming_.erase(entry);
  return group;
}

}  // namespace alpa
