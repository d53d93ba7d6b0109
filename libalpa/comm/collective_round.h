#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace alpa {

/// One rank's messages and results of one round of a collective.
class CollectiveRound {
 public:
  struct Sent {
    const void* data;
    std::int64_t bytes;
    int to;
  };
  struct Received {
    void* data;
    std::int64_t bytes;
    int from;
  };
  /// Of parts[first_part, first_part + part_count): their reduction, or a copy of a single one.
  struct Result {
    std::size_t first_part, part_count;
    void* into;
    std::int64_t bytes;
  };

  void clear();
  void send(const void* data, std::int64_t bytes,
            int to);  ///< nothing where there are no bytes, here and below
  void receive(void* data, std::int64_t bytes, int from);
  void add_part(const void* data) { parts.push_back(data); }
  void reduce_parts(void* into, std::int64_t bytes);  ///< those added since the last result
  void copy(const void* from, void* into, std::int64_t bytes);

  std::vector<Sent> sends;
  std::vector<Received> receives;
  std::vector<const void*> parts;
  std::vector<Result> results;
};

}  // namespace alpa
