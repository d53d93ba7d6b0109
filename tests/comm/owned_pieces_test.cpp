// The two collectives with owners, against naive sums and what base/collective_traffic says of them.
#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "libalpa/comm/collectives.h"
#include "tests/comm/conformance_rank.h"

namespace alpa {
namespace {

using conformance::number;
using conformance::sum_by_nodes;

/// Pieces as every rank has them: elements, and who owns them.
struct PieceList {
  std::vector<std::int64_t> counts;
  std::vector<int> owners;

  std::size_t elements() const {
    return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }
  std::vector<double> part_bytes(int ranks, std::int64_t element) const {
    std::vector<double> bytes(static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < counts.size(); ++i)
      bytes[owners[i]] += static_cast<double>(counts[i] * element);
    return bytes;
  }
};

/// Some with pieces of many lengths, and what is special: nothing, all of one rank, ranks with nothing, very
/// many pieces, and parts that are as long as each other.
std::vector<PieceList> piece_lists(int ranks) {
  const int last = ranks - 1;
  std::vector<PieceList> lists{{{}, {}},
                               {{0, 0}, {0, last}},
                               {{1}, {last}},
                               {{400'009}, {last}},
                               {{7, 300'000, 0, 12'345}, {0, 0, 0, 0}},
                               {{5, 60'000, 3, 200'000}, {last, 0, last, 0}}};
  std::mt19937 random(7);
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  for (const auto& [pieces, most] : {std::pair<int, std::int64_t>{40, 200}, {30, 3000}, {12, 90'000}}) {
    PieceList list;
    for (int i = 0; i < pieces; ++i) {
      list.counts.push_back(up_to(most));
      list.owners.push_back(static_cast<int>(up_to(last)));
    }
    lists.push_back(list);
  }
  return lists;
}

/// One rank's pieces, each in memory of its own. Element i of them all is value(rank, i).
template <class T>
struct PiecesOfRank {
  template <class Value>
  PiecesOfRank(const PieceList& list, int rank, Value value) {
    std::size_t element = 0;
    for (const std::int64_t count : list.counts) {
      std::vector<T>& piece = memory.emplace_back();
      for (std::int64_t i = 0; i < count; ++i) piece.push_back(value(rank, element++));
    }
    for (std::size_t i = 0; i < memory.size(); ++i)
      pieces.push_back(
          {memory[i].data(), static_cast<std::int64_t>(memory[i].size() * sizeof(T)), list.owners[i]});
  }

  std::vector<std::vector<T>> memory;
  std::vector<OwnedPiece> pieces;
};

template <class T>
T value_of(int rank, std::size_t i) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return static_cast<T>(1000 * number(rank, i));
  else
    return from_float<T>(number(rank, i));
}

template <class T>
std::vector<T> sum_of(GroupShape shape, std::size_t count) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    std::vector<T> sums(count);
    for (int rank = 0; rank < shape.size(); ++rank)
      for (std::size_t i = 0; i < count; ++i) sums[i] += value_of<T>(rank, i);
    return sums;
  } else {
    return sum_by_nodes<T>(shape, count);
  }
}

class OwnedPiecesOnNodes : public testing::TestWithParam<GroupShape> {
 protected:
  const GroupShape shape_ = GetParam();

  /// body(group, stream) on a thread for each rank.
  template <class Body>
  void run(Body body) {
    run_on_threads(shape_.size(), [&](int, Communicator& group) {
      const auto device = make_cpu_device(1);
      group.set_nodes(consecutive_nodes(group.size(), shape_.per_node));
      body(group, *device->make_stream());
    });
  }

  /// What has been sent is what owners_traffic() says, to the byte.
  void expect_sent(const Communicator& group, const SentBytes& before, CollectiveKind kind,
                   const PieceList& list, std::int64_t element) {
    const CollectiveTraffic expected =
        owners_traffic(kind, shape_, list.part_bytes(group.size(), element), group.rank());
    EXPECT_EQ(static_cast<double>(group.sent().within_node - before.within_node), expected.within_node);
    EXPECT_EQ(static_cast<double>(group.sent().between_nodes - before.between_nodes), expected.between_nodes);
  }

  template <class T>
  void expect_sums(DType dtype) {
    for (const PieceList& list : piece_lists(shape_.size())) {
      const std::vector<T> sum = sum_of<T>(shape_, list.elements());
      run([&](Communicator& group, Stream& stream) {
        PiecesOfRank<T> mine(list, group.rank(), value_of<T>);
        const SentBytes before = group.sent();
        group.reduce_to_owners(stream, mine.pieces, dtype, Reduction::sum);
        auto expected = sum.begin();
        for (std::size_t i = 0; i < list.counts.size(); expected += list.counts[i++]) {
          if (list.owners[i] != group.rank()) continue;
          EXPECT_TRUE(std::equal(mine.memory[i].begin(), mine.memory[i].end(), expected)) << "piece " << i;
        }
        expect_sent(group, before, CollectiveKind::reduce_scatter, list, sizeof(T));
      });
    }
  }
};

TEST_P(OwnedPiecesOnNodes, AreAddedUpByNodes) { expect_sums<float>(DType::f32); }
TEST_P(OwnedPiecesOnNodes, OfBf16AreRoundedOncePerNodeAndOnceOverNodes) {
  expect_sums<Bfloat16>(DType::bf16);
}
TEST_P(OwnedPiecesOnNodes, OfIntegersAreAddedUp) { expect_sums<std::int32_t>(DType::i32); }

TEST_P(OwnedPiecesOnNodes, BecomeWhatTheirOwnersHave) {
  for (const PieceList& list : piece_lists(shape_.size()))
    run([&](Communicator& group, Stream& stream) {
      PiecesOfRank<float> mine(list, group.rank(), number);
      const SentBytes before = group.sent();
      group.broadcast_from_owners(stream, mine.pieces);
      std::size_t element = 0;
      for (std::size_t i = 0; i < mine.memory.size(); ++i) {
        std::vector<float> expected(mine.memory[i].size());
        for (float& value : expected) value = number(list.owners[i], element++);
        EXPECT_TRUE(mine.memory[i] == expected) << "piece " << i;
      }
      expect_sent(group, before, CollectiveKind::all_gather, list, sizeof(float));
    });
}

TEST_P(OwnedPiecesOnNodes, MayBeReducedToTheirMaximum) {
  const PieceList list = piece_lists(shape_.size()).back();
  run([&](Communicator& group, Stream& stream) {
    PiecesOfRank<float> mine(list, group.rank(), number);
    group.reduce_to_owners(stream, mine.pieces, DType::f32, Reduction::max);
    std::size_t element = 0;
    for (std::size_t i = 0; i < mine.memory.size(); ++i)
      for (const float found : mine.memory[i]) {
        float expected = number(0, element);
        for (int rank = 1; rank < group.size(); ++rank) expected = std::max(expected, number(rank, element));
        if (list.owners[i] == group.rank()) {
          ASSERT_EQ(found, expected);
        }
        ++element;
      }
  });
}

TEST_P(OwnedPiecesOnNodes, HaveTheSameBitsInEveryRun) {
  const PieceList list = piece_lists(shape_.size()).back();
  run([&](Communicator& group, Stream& stream) {
    std::vector<std::vector<float>> first_run;
    for (int times = 0; times < 2; ++times) {
      PiecesOfRank<float> mine(list, group.rank(), number);
      group.reduce_to_owners(stream, mine.pieces, DType::f32, Reduction::sum);
      group.broadcast_from_owners(stream, mine.pieces);
      if (times == 0) first_run = mine.memory;
      EXPECT_TRUE(mine.memory == first_run);
    }
  });
}

TEST_P(OwnedPiecesOnNodes, OfEqualPartsAreAReduceScatterAndAnAllGather) {
  for (const std::size_t each : {std::size_t{10}, std::size_t{200'003}})
    run([&](Communicator& group, Stream& stream) {
      const auto size = static_cast<std::size_t>(group.size()), me = static_cast<std::size_t>(group.rank());
      std::vector<float> whole = conformance::numbers(group.rank(), each * size), scattered = whole,
                         part(each), gathered(each * size);
      std::vector<OwnedPiece> pieces;
      for (std::size_t rank = 0; rank < size; ++rank)
        pieces.push_back(
            {whole.data() + rank * each, static_cast<std::int64_t>(each * 4), static_cast<int>(rank)});

      const auto sent_by = [&](auto call) {
        const SentBytes before = group.sent();
        call();
        return SentBytes{group.sent().within_node - before.within_node,
                         group.sent().between_nodes - before.between_nodes};
      };
      EXPECT_EQ(sent_by([&] { group.reduce_to_owners(stream, pieces, DType::f32, Reduction::sum); }),
                sent_by([&] {
                  group.reduce_scatter(stream, scattered.data(), part.data(), std::ssize(part), DType::f32,
                                       Reduction::sum);
                }));
      EXPECT_TRUE(
          std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(me * each)));

      EXPECT_EQ(sent_by([&] { group.broadcast_from_owners(stream, pieces); }), sent_by([&] {
                  group.all_gather(stream, part.data(), gathered.data(), static_cast<std::int64_t>(each * 4));
                }));
      EXPECT_TRUE(gathered == whole);
    });
}

INSTANTIATE_TEST_SUITE_P(Shapes, OwnedPiecesOnNodes,
                         testing::Values(GroupShape{1, 1}, GroupShape{1, 2}, GroupShape{1, 5},
                                         GroupShape{2, 1}, GroupShape{3, 1}, GroupShape{2, 2},
                                         GroupShape{3, 2}, GroupShape{2, 3}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.nodes) + "x" +
                                  std::to_string(shape.param.per_node);
                         });

TEST(OwnedPieces, OfUnevenNodesTakeEachRankAsOne) {
  const PieceList list = piece_lists(3).back();
  const std::vector<float> sum = conformance::sum_in_rank_order(3, list.elements());
  run_on_threads(3, [&](int rank, Communicator& group) {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    group.set_nodes({0, 0, 1});
    PiecesOfRank<float> mine(list, rank, number);
    group.reduce_to_owners(*stream, mine.pieces, DType::f32, Reduction::sum);
    group.broadcast_from_owners(*stream, mine.pieces);
    std::vector<float> found;
    for (const std::vector<float>& piece : mine.memory) found.insert(found.end(), piece.begin(), piece.end());
    EXPECT_TRUE(found == sum);
  });
}

}  // namespace
}  // namespace alpa
