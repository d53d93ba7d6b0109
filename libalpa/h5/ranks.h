#pragma once
// Internal to this module.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace alpa {

class Communicator;
class Stream;

/// The ranks that write a file together, or this process alone.
class Ranks {
 public:
  Ranks() = default;
  Ranks(Communicator& all, Stream& host) : all_(&all), host_(&host) {}

  int rank() const;
  int size() const;

  void together(const std::function<void()>& body) const;  ///< see comm/together.h
  std::string from_first(const std::string& text) const;   ///< rank 0's
  std::vector<std::vector<std::int64_t>> gathered(const std::vector<std::int64_t>& mine) const;  ///< by rank
  bool any(bool mine) const;  ///< whether it is so on any rank

  /// Bytes on their way to, or room for those from, another rank.
  struct Message {
    int rank;
    char* bytes;
    std::int64_t count;
  };

  /// Moves messages; those of one pair of ranks arrive in the order in which they are listed.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received) const;

 private:
  bool alone() const { return size() == 1; }

  Communicator* all_ = nullptr;
  Stream* host_ = nullptr;
};

}  // namespace alpa
