#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace alpa {

using Bytes = std::vector<std::byte>;

/// What the ranks of run_on_threads share: one lock, and who has failed or left.
class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks) : finished_(static_cast<std::size_t>(ranks)) {}

  void finish(int rank);
  void fail(int rank, std::exception_ptr failure);
  void rethrow_first_failure() const;  ///< returns where there was none; for when all ranks are done

 private:
  friend class ThreadGroup;

  /// Waits until `reached()`. Throws Error(peer) when a rank has failed, or when one of `needed` has left
  /// before that.
  template <class Reached>
  void wait(std::unique_lock<std::mutex>& lock, const std::vector<int>& needed, Reached reached);
  void throw_if_failed() const;
  void throw_if_hopeless(const std::vector<int>& needed) const;  ///< where one has failed, or these have left
  void notify();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t changes_ = 0;
  std::vector<char> finished_;
  std::exception_ptr first_failure_;
  std::string failure_;
};

/// Some ranks of a ThreadWorld that meet and exchange host memory. Ranks are indices into `members`.
class ThreadGroup {
 public:
  /// `members` are ranks of `world`, ascending; `world` outlives the group.
  ThreadGroup(ThreadWorld& world, std::vector<int> members);

  int size() const { return static_cast<int>(members_.size()); }

  /// Every member has called it when it returns. Throws Error(peer) when that cannot happen any more.
  void meet();

  /// All members' contributions, by rank. They stay until this rank's next call of post.
  const std::vector<Bytes>& post(int rank, std::int64_t round, const Bytes& contribution);

  /// Messages between two ranks with the same tag are taken in the order put.
  void put_message(int from, int to, int tag, Bytes message);
  std::optional<Bytes> try_take_message(int from, int to, int tag);
  bool has_message(int from, int to, int tag);

  /// Waits until something has happened in the world since `seen`, a result of this, and returns a later one.
  /// Throws Error(peer) when nothing has and one of these ranks has left, or any has failed.
  std::int64_t wait_for_change(std::int64_t seen, const std::vector<int>& needed);
  std::int64_t look_for_change(std::int64_t seen, const std::vector<int>& needed);  ///< does not wait

  /// The group of the ranks that gave the same color in this round; each of `ranks` (ascending) asks once.
  std::shared_ptr<ThreadGroup> subgroup(std::int64_t round, const std::vector<int>& ranks);

 private:
  struct Forming {
    std::shared_ptr<ThreadGroup> group;
    std::size_t missing;
  };

  std::vector<int> in_world(const std::vector<int>& ranks) const;

  ThreadWorld& world_;
  std::vector<int> members_;
  int arrived_ = 0;
  std::int64_t meetings_ = 0;
  // Two sets in turn: a rank can write its next contribution while others still read this one, and the
  // meeting between the two keeps it from getting further ahead.
  std::vector<Bytes> posted_[2];
  std::map<std::tuple<int, int, int>, std::deque<Bytes>> messages_;  ///< [from, to, tag]
  std::map<std::pair<std::int64_t, int>, Forming> forming_;
};

}  // namespace alpa
