#pragma once
// What the cases of communicator_conformance.h work with: a rank of some backend, tensors on its device,
// sums.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/base/collective_traffic.h"
#include "libalpa/base/float_types.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"

namespace alpa::conformance {

/// One rank of the group under test.
struct Rank {
  Communicator& group;
  Device& device;
  Stream& stream;
  bool reduces_in_rank_order;  ///< sums equal ((rank 0 + rank 1) + rank 2) + ... bit for bit
  std::size_t longest_buffer;  ///< in elements: enough to reach the sizes that this backend cuts into pieces
};

inline void connect_to_all(Communicator& group) {
  std::vector<RankPair> all;
  for (int from = 0; from < group.size(); ++from)
    for (int to = 0; to < group.size(); ++to) all.emplace_back(from, to);
  group.connect(all);
}
inline std::unique_ptr<Communicator> connected_duplicate(Communicator& group) {
  std::unique_ptr<Communicator> duplicate = group.duplicate();
  connect_to_all(*duplicate);
  return duplicate;
}

struct Case {
  std::string name;
  std::function<void(Rank&)> run;
};

inline void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

/// A vector in device memory.
template <class T>
class Array {
 public:
  Array(Rank& rank, const std::vector<T>& values)
      : stream_(rank.stream), count_(values.size()), memory_(rank.device.allocate(bytes())) {
    stream_.copy_to_device(data(), values.data(), bytes());
    stream_.synchronize();
  }
  Array(Rank& rank, std::size_t count) : Array(rank, std::vector<T>(count)) {}

  T* data() const { return static_cast<T*>(memory_->data()); }
  std::int64_t count() const { return static_cast<std::int64_t>(count_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(count_ * sizeof(T)); }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    stream_.copy_to_host(host.data(), data(), bytes());
    stream_.synchronize();
    return host;
  }

 private:
  Stream& stream_;
  std::size_t count_;
  std::unique_ptr<DeviceMemory> memory_;
};

/// Some number for element `index` of rank `rank`, such that the order of a sum shows in its last bits.
inline float number(int rank, std::size_t index) {
  const auto scrambled =
      static_cast<std::uint32_t>((index + 1) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u);
  return (static_cast<float>(scrambled >> 8) * 0x1p-24f - 0.5f) * (rank % 2 == 0 ? 1.0f : 1000.0f);
}

inline std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = number(rank, i);
  return values;
}

inline std::vector<float> sum_in_rank_order(int ranks, std::size_t count) {
  std::vector<float> sum = numbers(0, count);
  for (int rank = 1; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i) sum[i] += number(rank, i);
  return sum;
}

/// The sum that comm/collectives.h promises: over nodes, of sums within nodes.
template <class T>
std::vector<T> sum_by_nodes(GroupShape shape, std::size_t count) {
  std::vector<T> sums(count);
  for (std::size_t i = 0; i < count; ++i) {
    float over_nodes = 0;
    for (int node = 0; node < shape.nodes; ++node) {
      const int first = node * shape.per_node;
      float of_node = to_float(from_float<T>(number(first, i)));
      for (int rank = first + 1; rank < first + shape.per_node; ++rank)
        of_node += to_float(from_float<T>(number(rank, i)));
      of_node = to_float(from_float<T>(of_node));
      over_nodes = node == 0 ? of_node : over_nodes + of_node;
    }
    sums[i] = from_float<T>(over_nodes);
  }
  return sums;
}

/// A sum in another order differs by the rounding of its `ranks` additions of numbers below 1000.
inline void expect_sum(const Rank& rank, const std::vector<float>& found,
                       const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  if (rank.reduces_in_rank_order) {
    EXPECT_TRUE(found == expected) << "sums of " << found.size()
                                   << " numbers differ from those in rank order";
    return;
  }
  const float tolerance = static_cast<float>(rank.group.size()) * 1000 * 0x1p-23f;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

constexpr std::size_t kPieces = 1200007;  ///< longer than a piece of any backend
constexpr std::size_t kOnePiece = 50021;  ///< for backends without pieces

inline std::vector<std::size_t> with(std::vector<std::size_t> shorter, std::size_t longest) {
  shorter.push_back(longest);
  return shorter;
}

}  // namespace alpa::conformance
