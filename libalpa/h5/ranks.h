#pragma once
// Internal to this module: the only part that speaks MPI.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace alpa {

/// The ranks that write a file together: those of an MPI communicator, or this process alone. Waiting tests
/// with back-off, because ranks may outnumber cores and MPICH busy-polls.
class Ranks {
 public:
  Ranks() = default;
  explicit Ranks(int native_communicator);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Runs `body` on each rank. Where it throws on any, the lowest such rank's error is thrown on all, as that
  /// rank's.
  void together(const std::function<void()>& body) const;

  std::string from_first(const std::string& text) const;                                         ///< rank 0's
  std::vector<std::vector<std::int64_t>> gathered(const std::vector<std::int64_t>& mine) const;  ///< by rank

  /// Bytes on their way to, or room for those from, another rank.
  struct Message {
    int rank;
    char* bytes;
    std::int64_t count;
  };

  /// Moves messages; those of one pair of ranks arrive in the order in which they are listed.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received) const;

 private:
  int communicator_ = 0;  // a copy of our own, so that our messages meet no others
  int rank_ = 0, size_ = 1;
};

}  // namespace alpa
