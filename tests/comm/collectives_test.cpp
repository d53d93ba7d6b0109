#include "libalpa/comm/collectives.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <mutex>

#include "libalpa/base/float_types.h"
#include "tests/comm/conformance_rank.h"

namespace alpa {
namespace {

using conformance::number;
using conformance::numbers;
using conformance::sum_by_nodes;

/// Ranks on so many nodes, each in a thread, with what each does and has sent by then.
std::vector<SentBytes> sent_by_ranks(GroupShape shape,
                                     const std::function<void(Communicator&, Stream&)>& body) {
  std::vector<SentBytes> sent(static_cast<std::size_t>(shape.size()));
  run_on_threads(shape.size(), [&](int rank, Communicator& group) {
    const auto device = make_cpu_device(1);
    group.set_nodes(consecutive_nodes(group.size(), shape.per_node));
    body(group, *device->make_stream());
    sent[rank] = group.sent();
  });
  return sent;
}

template <class T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(from_float<T>(number(rank, i)));
  return values;
}

/// Elements of a tensor: short, in one chunk, in several; divisible by nothing.
constexpr std::size_t kCounts[] = {1, 3001, 50'021, 400'009};

class CollectivesOnNodes : public testing::TestWithParam<GroupShape> {
 protected:
  const GroupShape shape_ = GetParam();
  std::size_t size() const { return static_cast<std::size_t>(shape_.size()); }

  /// A piece differs from its share of a chunk by an element at most.
  void expect_traffic(const std::vector<SentBytes>& sent, CollectiveKind kind, std::int64_t bytes) {
    const CollectiveTraffic expected = collective_traffic(kind, shape_, static_cast<double>(bytes));
    const std::int64_t chunks = 1 + bytes / collective_chunk_bytes(bytes, shape_.size());
    const double rounding = static_cast<double>(2 * 4 * chunks * shape_.size());
    double between = 0;
    for (const SentBytes& rank : sent) {
      EXPECT_NEAR(static_cast<double>(rank.within_node), expected.within_node, rounding);
      EXPECT_NEAR(static_cast<double>(rank.between_nodes), expected.between_nodes, rounding);
      between += static_cast<double>(rank.between_nodes);
    }
    // All ranks together send what is due, to the byte.
    if (bytes % (4 * shape_.size()) == 0) {
      EXPECT_DOUBLE_EQ(between, expected.between_nodes * shape_.size());
    }
  }
};

TEST_P(CollectivesOnNodes, AllReduceAddsByNodesWhateverTheSize) {
  for (const std::size_t count : kCounts) {
    const std::vector<float> expected = sum_by_nodes<float>(shape_, count);
    const auto sent = sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      std::vector<float> values = numbers(group.rank(), count);
      group.all_reduce(stream, values.data(), std::ssize(values), DType::f32, Reduction::sum);
      EXPECT_TRUE(values == expected) << count;
    });
    expect_traffic(sent, CollectiveKind::all_reduce, static_cast<std::int64_t>(4 * count));
  }
}

TEST_P(CollectivesOnNodes, AllReduceOfBf16RoundsOncePerNodeAndOnceOverNodes) {
  for (const std::size_t count : {std::size_t{100}, std::size_t{150'001}}) {
    const std::vector<Bfloat16> expected = sum_by_nodes<Bfloat16>(shape_, count);
    sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      std::vector<Bfloat16> values = values_of<Bfloat16>(group.rank(), count);
      group.all_reduce(stream, values.data(), std::ssize(values), DType::bf16, Reduction::sum);
      EXPECT_TRUE(values == expected) << count;
    });
  }
}

TEST_P(CollectivesOnNodes, ReduceScatterAddsAsAllReduceDoes) {
  for (const std::size_t count : kCounts) {
    const std::size_t each = count / size() + 1;
    const std::vector<float> sum = sum_by_nodes<float>(shape_, each * size());
    const auto sent = sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      std::vector<float> whole = numbers(group.rank(), each * size()), part(each);
      group.reduce_scatter(stream, whole.data(), part.data(), std::ssize(part), DType::f32, Reduction::sum);
      const auto first = sum.begin() + static_cast<std::ptrdiff_t>(each) * group.rank();
      EXPECT_TRUE(std::equal(part.begin(), part.end(), first)) << each;
    });
    expect_traffic(sent, CollectiveKind::reduce_scatter, static_cast<std::int64_t>(4 * each * size()));
  }
}

TEST_P(CollectivesOnNodes, AllGatherLinesPartsUpByRank) {
  for (const std::size_t count : kCounts) {
    const std::size_t each = count / size() + 1;
    const auto sent = sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      const std::vector<float> part = numbers(group.rank(), each);
      std::vector<float> whole(each * size());
      group.all_gather(stream, part.data(), whole.data(), static_cast<std::int64_t>(4 * each));
      for (int rank = 0; rank < group.size(); ++rank)
        EXPECT_EQ(whole[static_cast<std::size_t>(rank) * each + each / 2], number(rank, each / 2));
      EXPECT_EQ(whole.back(), number(group.size() - 1, each - 1));
    });
    expect_traffic(sent, CollectiveKind::all_gather, static_cast<std::int64_t>(4 * each * size()));
  }
}

TEST_P(CollectivesOnNodes, AllToAllSendsEachBlockOnce) {
  for (const std::size_t count : kCounts) {
    const std::size_t each = count / size() + 1;
    const auto sent = sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      const std::vector<float> from = numbers(group.rank(), each * size());
      std::vector<float> to(each * size());
      group.all_to_all(stream, from.data(), to.data(), static_cast<std::int64_t>(4 * each));
      const std::size_t last = static_cast<std::size_t>(group.rank() + 1) * each - 1;
      for (std::size_t rank = 0; rank < size(); ++rank)
        EXPECT_EQ(to[rank * each + each - 1], number(static_cast<int>(rank), last));
    });
    expect_traffic(sent, CollectiveKind::all_to_all, static_cast<std::int64_t>(4 * each * size()));
  }
}

TEST_P(CollectivesOnNodes, BroadcastReachesEachRankOnce) {
  for (const std::size_t count : {std::size_t{100}, std::size_t{300'000}}) {
    const int root = shape_.size() - 1;
    const auto bytes = static_cast<std::int64_t>(4 * count);
    const auto sent = sent_by_ranks(shape_, [&](Communicator& group, Stream& stream) {
      std::vector<float> values = numbers(group.rank(), count);
      group.broadcast(stream, values.data(), bytes, root);
      EXPECT_TRUE(values == numbers(root, count));
    });
    SentBytes all;
    for (const SentBytes& rank : sent) {
      all.within_node += rank.within_node;
      all.between_nodes += rank.between_nodes;
    }
    EXPECT_EQ(all, (SentBytes{(shape_.per_node - 1) * shape_.nodes * bytes, (shape_.nodes - 1) * bytes}));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CollectivesOnNodes,
                         testing::Values(GroupShape{1, 2}, GroupShape{1, 5}, GroupShape{2, 1},
                                         GroupShape{5, 1}, GroupShape{2, 2}, GroupShape{3, 2},
                                         GroupShape{2, 3}, GroupShape{4, 2}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.nodes) + "x" +
                                  std::to_string(shape.param.per_node);
                         });

struct WithServers {
  GroupShape adding;
  int servers;  ///< ranks
  std::string name() const { return fmt::format("{}x{}_and_{}", adding.nodes, adding.per_node, servers); }
};

/// All-reduces in which the last ranks have nothing to add.
class ServedAllReduce : public testing::TestWithParam<WithServers> {
 protected:
  const GroupShape adding_ = GetParam().adding;
  const int servers_ = GetParam().servers;

  std::vector<SentBytes> sent_by_sum(std::size_t count, const std::vector<float>& expected) const {
    const int per_node = adding_.per_node;
    std::vector<SentBytes> sent(static_cast<std::size_t>(adding_.size() + servers_));
    run_on_threads(adding_.size() + servers_, [&](int rank, Communicator& group) {
      const auto device = make_cpu_device(1);
      const auto stream = device->make_stream();
      group.set_nodes(consecutive_nodes(group.size(), per_node));
      std::vector<float> values;
      if (rank < adding_.size()) values = numbers(rank, count);
      group.all_reduce(*stream, values.empty() ? nullptr : values.data(), static_cast<std::int64_t>(count),
                       DType::f32, Reduction::sum, servers_);
      if (rank < adding_.size()) {
        EXPECT_TRUE(values == expected) << count;
      }
      sent[rank] = group.sent();
    });
    return sent;
  }
};

TEST_P(ServedAllReduce, AddsWhatTheOthersHaveInTheirOrder) {
  for (const std::size_t count : kCounts) sent_by_sum(count, sum_by_nodes<float>(adding_, count));
}

/// BytePS, OSDI'20: with n machines and k <= n further ones each interface takes 2 n (n-1) / (n^2 + kn - 2k)
/// of the bytes, in either direction; with more of them the n alone are the limit.
TEST_P(ServedAllReduce, SendsThroughEachInterfaceWhatTheFormulaSays) {
  const int n = adding_.nodes, k = servers_ / adding_.per_node;
  constexpr std::size_t kCount = 1'200'000;
  const std::vector<SentBytes> sent = sent_by_sum(kCount, sum_by_nodes<float>(adding_, kCount));
  const double bytes = 4.0 * kCount, of_bytes = k <= n ? 2.0 * n * (n - 1) / (n * n + k * n - 2 * k) : 1.0;
  // Pieces differ from their shares of a chunk, of 128 KiB or more, by an element at most; each goes to n
  // nodes.
  const double chunks = 1 + bytes / (128 << 10);
  const double rounding = 4 * chunks * n * 2 * adding_.per_node;
  std::vector<double> of_node(static_cast<std::size_t>(n + k));
  for (std::size_t rank = 0; rank < sent.size(); ++rank)
    of_node[rank / static_cast<std::size_t>(adding_.per_node)] +=
        static_cast<double>(sent[rank].between_nodes);
  for (int node = 0; node < n + k; ++node) {
    const double expected = node < n || k <= n ? of_bytes : 1.0 * n / k;
    EXPECT_NEAR(of_node[static_cast<std::size_t>(node)], expected * bytes, rounding) << node;
  }
  const CollectiveTraffic traffic = served_traffic(adding_, k, bytes);
  EXPECT_NEAR(traffic.between_nodes * adding_.per_node, of_bytes * bytes, 1e-6 * bytes);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ServedAllReduce,
                         testing::Values(WithServers{{2, 1}, 1}, WithServers{{4, 1}, 1},
                                         WithServers{{4, 1}, 2}, WithServers{{4, 1}, 4},
                                         WithServers{{3, 1}, 5}, WithServers{{2, 2}, 2},
                                         WithServers{{3, 2}, 4}),
                         [](const auto& shape) { return shape.param.name(); });

TEST(Collectives, OfGroupsGoByTheNodesOfTheWhole) {
  // Two nodes of two: the first group is one rank of each node, the second likewise.
  const auto sent = sent_by_ranks({2, 2}, [](Communicator& world, Stream& stream) {
    const auto across = world.split(world.rank() % 2), along = world.split(world.rank() / 2);
    float value = 1;
    across->all_reduce(stream, &value, 1, DType::f32, Reduction::sum);
    along->all_reduce(stream, &value, 1, DType::f32, Reduction::sum);
    EXPECT_EQ(value, 4);
    EXPECT_EQ(across->sent(), (SentBytes{0, 4}));
    EXPECT_EQ(along->sent(), (SentBytes{4, 0}));
  });
  EXPECT_THAT(sent, testing::Each(SentBytes{}));
}

TEST(Collectives, OfUnevenNodesTakeEachRankAsOne) {
  constexpr std::size_t kCount = 100'003;
  run_on_threads(3, [&](int rank, Communicator& group) {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    group.set_nodes({0, 0, 1});
    std::vector<float> values = numbers(rank, kCount);
    group.all_reduce(*stream, values.data(), std::ssize(values), DType::f32, Reduction::sum);
    EXPECT_TRUE(values == conformance::sum_in_rank_order(3, kCount));
  });
}

TEST(Collectives, MessagesAreCountedToo) {
  const auto sent = sent_by_ranks({2, 2}, [](Communicator& group, Stream& stream) {
    float value = 1;
    if (group.rank() == 0) {
      group.send(stream, &value, 4, 1);
      group.send(stream, &value, 4, 2);
    } else if (group.rank() < 3) {
      group.receive(stream, &value, 4, 0);
    }
  });
  EXPECT_EQ(sent[0], (SentBytes{4, 4}));
}

}  // namespace
}  // namespace alpa
