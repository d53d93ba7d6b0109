#pragma once
// What every communicator promises, as cases that each backend's test runs on all ranks of a group.
#include <algorithm>
#include <vector>

#include "libalpa/base/float_types.h"
#include "tests/comm/conformance_rank.h"

namespace alpa::conformance {

inline void all_reduce_sums(Rank& rank) {
  // Below, at and above the size where backends change their way of doing it, mostly not divisible by the
  // ranks.
  for (const std::size_t count : with({0, 1, 3, 1000, 4096, 4097}, rank.longest_buffer)) {
    Array<float> values(rank, numbers(rank.group.rank(), count));
    rank.group.all_reduce(rank.stream, values.data(), values.count(), DType::f32, Reduction::sum);
    expect_sum(rank, values.values(), sum_in_rank_order(rank.group.size(), count));
  }
}

inline void all_reduce_takes_the_maximum(Rank& rank) {
  for (const std::size_t count : {std::size_t{5}, std::size_t{20011}}) {
    std::vector<float> expected = numbers(0, count);
    for (int other = 1; other < rank.group.size(); ++other)
      for (std::size_t i = 0; i < count; ++i) expected[i] = std::max(expected[i], number(other, i));
    Array<float> values(rank, numbers(rank.group.rank(), count));
    rank.group.all_reduce(rank.stream, values.data(), values.count(), DType::f32, Reduction::max);
    EXPECT_EQ(values.values(), expected);
  }
}

inline void all_reduce_knows_integers(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  Array<std::int32_t> sums(rank, {me, -me, 1 << 24, me + 1});
  rank.group.all_reduce(rank.stream, sums.data(), sums.count(), DType::i32, Reduction::sum);
  const int triangle = size * (size - 1) / 2;
  EXPECT_EQ(sums.values(), (std::vector<std::int32_t>{triangle, -triangle, size << 24, triangle + size}));
  Array<std::int32_t> maxima(rank, {me, -me});
  rank.group.all_reduce(rank.stream, maxima.data(), maxima.count(), DType::i32, Reduction::max);
  EXPECT_EQ(maxima.values(), (std::vector<std::int32_t>{size - 1, 0}));
}

template <class T>
void all_reduce_rounds_once(Rank& rank, DType dtype) {
  const std::size_t count = 30011;
  std::vector<T> mine(count), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int other = 0; other < rank.group.size(); ++other) {
      const T value = from_float<T>(number(other, i));
      if (other == rank.group.rank()) mine[i] = value;
      sum += to_float(value);
    }
    expected[i] = from_float<T>(sum);
  }
  Array<T> values(rank, mine);
  rank.group.all_reduce(rank.stream, values.data(), values.count(), dtype, Reduction::sum);
  if (rank.reduces_in_rank_order) {
    EXPECT_TRUE(values.values() == expected);
    return;
  }
  // Rounded after every addition: half a unit in the last of at least 8 bits each, of sums below 1000 times
  // the ranks.
  const float tolerance = static_cast<float>(rank.group.size() * rank.group.size()) * 1000 * 0x1p-8f;
  const std::vector<T> found = values.values();
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_NEAR(to_float(found[i]), to_float(expected[i]), tolerance) << "element " << i;
}

inline void all_reduce_of_bf16_rounds_once(Rank& rank) {
  all_reduce_rounds_once<Bfloat16>(rank, DType::bf16);
}
inline void all_reduce_of_f16_rounds_once(Rank& rank) { all_reduce_rounds_once<Float16>(rank, DType::f16); }

inline void reductions_have_the_same_bits_on_every_rank_and_in_every_run(Rank& rank) {
  for (const std::size_t count : {std::size_t{777}, std::size_t{20011}}) {
    std::vector<float> first_run;
    for (int run = 0; run < 2; ++run) {
      Array<float> values(rank, numbers(rank.group.rank(), count));
      rank.group.all_reduce(rank.stream, values.data(), values.count(), DType::f32, Reduction::sum);
      const std::vector<float> mine = values.values();
      rank.group.broadcast(rank.stream, values.data(), values.bytes(), 0);
      EXPECT_TRUE(values.values() == mine) << "rank " << rank.group.rank() << " differs from rank 0";
      if (run == 0) first_run = mine;
      EXPECT_TRUE(mine == first_run) << "run 1 differs from run 0";
    }
  }
}

inline void all_gather_lines_parts_up_by_rank(Rank& rank) {
  for (const std::size_t count : with({0, 1, 999}, rank.longest_buffer / 4)) {
    const Array<float> part(rank, numbers(rank.group.rank(), count));
    const Array<float> whole(rank, count * static_cast<std::size_t>(rank.group.size()));
    rank.group.all_gather(rank.stream, part.data(), whole.data(), part.bytes());
    std::vector<float> expected;
    for (int other = 0; other < rank.group.size(); ++other) {
      const std::vector<float> theirs = numbers(other, count);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    EXPECT_TRUE(whole.values() == expected) << count << " elements each";
  }
}

inline void reduce_scatter_gives_each_rank_its_piece_of_the_sum(Rank& rank) {
  const auto size = static_cast<std::size_t>(rank.group.size());
  for (const std::size_t each : with({0, 1, 999}, rank.longest_buffer / 2)) {
    const Array<float> whole(rank, numbers(rank.group.rank(), each * size));
    const Array<float> part(rank, each);
    rank.group.reduce_scatter(rank.stream, whole.data(), part.data(), part.count(), DType::f32,
                              Reduction::sum);
    const std::vector<float> sum = sum_in_rank_order(rank.group.size(), each * size);
    const auto first = sum.begin() + static_cast<std::ptrdiff_t>(each) * rank.group.rank();
    expect_sum(rank, part.values(), std::vector<float>(first, first + static_cast<std::ptrdiff_t>(each)));
  }
}

inline void all_to_all_transposes_blocks(Rank& rank) {
  const auto size = static_cast<std::size_t>(rank.group.size());
  for (const std::size_t each : with({0, 1, 999}, rank.longest_buffer / 8)) {
    const Array<float> from(rank, numbers(rank.group.rank(), each * size));
    const Array<float> to(rank, each * size);
    rank.group.all_to_all(rank.stream, from.data(), to.data(),
                          static_cast<std::int64_t>(each * sizeof(float)));
    std::vector<float> expected;
    for (int other = 0; other < rank.group.size(); ++other)
      for (std::size_t i = 0; i < each; ++i)
        expected.push_back(number(other, static_cast<std::size_t>(rank.group.rank()) * each + i));
    EXPECT_TRUE(to.values() == expected) << each << " elements each";
  }
}

inline void broadcast_copies_the_roots_data(Rank& rank) {
  for (int root = 0; root < rank.group.size(); ++root)
    for (const std::size_t count : with({0, 1, 4097}, rank.longest_buffer)) {
      const Array<float> data(rank, numbers(rank.group.rank(), count));
      rank.group.broadcast(rank.stream, data.data(), data.bytes(), root);
      EXPECT_TRUE(data.values() == numbers(root, count)) << count << " elements from rank " << root;
    }
}

/// Pieces of `values` of unequal lengths, the first of which is the last in memory, each in turn of one of
/// the group's first `owners` ranks.
inline std::vector<OwnedPiece> owned_pieces(const Array<float>& values, int owners) {
  std::vector<OwnedPiece> pieces;
  std::int64_t end = values.count();
  for (int i = 0; end > 0; ++i) {
    const std::int64_t count = std::min<std::int64_t>(end, i % 3 == 0 ? 1 + end / 3 : i % 3 == 1 ? 3 : 0);
    end -= count;
    pieces.push_back({values.data() + end, count * 4, i % owners});
  }
  return pieces;
}

/// The elements that belong to one of those pieces.
inline std::vector<float> elements_of(const OwnedPiece& piece, const Array<float>& tensor,
                                      const std::vector<float>& values) {
  const auto first = values.begin() + (static_cast<const float*>(piece.data) - tensor.data());
  return {first, first + piece.bytes / 4};
}

inline void reduce_to_owners_sums_each_piece_at_its_owner(Rank& rank) {
  for (const int owners : {1, rank.group.size()})
    for (const std::size_t count : with({0, 1, 1000}, rank.longest_buffer)) {
      const Array<float> values(rank, numbers(rank.group.rank(), count));
      const std::vector<OwnedPiece> pieces = owned_pieces(values, owners);
      rank.group.reduce_to_owners(rank.stream, pieces, DType::f32, Reduction::sum);
      const std::vector<float> found = values.values(), sum = sum_in_rank_order(rank.group.size(), count);
      for (const OwnedPiece& piece : pieces)
        if (piece.owner == rank.group.rank())
          expect_sum(rank, elements_of(piece, values, found), elements_of(piece, values, sum));
    }
}

inline void broadcast_from_owners_hands_each_piece_to_all(Rank& rank) {
  for (const int owners : {1, rank.group.size()})
    for (const std::size_t count : with({0, 1, 1000}, rank.longest_buffer)) {
      const Array<float> values(rank, numbers(rank.group.rank(), count));
      const std::vector<OwnedPiece> pieces = owned_pieces(values, owners);
      rank.group.broadcast_from_owners(rank.stream, pieces);
      const std::vector<float> found = values.values();
      for (const OwnedPiece& piece : pieces)
        EXPECT_TRUE(elements_of(piece, values, found) ==
                    elements_of(piece, values, numbers(piece.owner, count)));
    }
}

inline void messages_arrive_in_the_order_sent(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  const std::vector<std::size_t> lengths{1, 70001, 0, 5};
  std::vector<std::unique_ptr<Array<float>>> sent, received;  // freeing memory of GPUs waits for all messages
  for (const std::size_t length : lengths) {
    sent.push_back(std::make_unique<Array<float>>(rank, numbers(me, length)));
    rank.group.send(rank.stream, sent.back()->data(), sent.back()->bytes(), next);
  }
  for (const std::size_t length : lengths) {
    received.push_back(std::make_unique<Array<float>>(rank, length));
    rank.group.receive(rank.stream, received.back()->data(), received.back()->bytes(), previous);
    EXPECT_TRUE(received.back()->values() == numbers(previous, length)) << length << " elements";
  }
  rank.group.wait_sends(rank.stream);
}

inline void large_messages_cross_without_deadlock(Rank& rank) {
  const std::size_t count = (8 << 20) / sizeof(float);
  const int size = rank.group.size(), me = rank.group.rank();
  const Array<float> mine(rank, numbers(me, count));
  for (int peer = 0; peer < size; ++peer)
    if (peer != me) rank.group.send(rank.stream, mine.data(), mine.bytes(), peer);
  const Array<float> received(rank, count);
  for (int peer = size - 1; peer >= 0; --peer) {
    if (peer == me) continue;
    rank.group.receive(rank.stream, received.data(), received.bytes(), peer);
    EXPECT_TRUE(received.values() == numbers(peer, count)) << "from rank " << peer;
  }
  rank.group.wait_sends(rank.stream);
}

inline void sends_need_not_be_received_in_the_order_of_their_peers(Rank& rank) {
  const int me = rank.group.rank();
  if (rank.group.size() < 3) return;
  // Rank 2 takes from rank 1 what depends on the message that rank 0 sent after the one for rank 2.
  const std::size_t count = (512 << 10) / sizeof(float);
  const Array<float> first(rank, numbers(0, count)), second(rank, numbers(1, count));
  const Array<float> received(rank, count);
  if (me == 0) {
    rank.group.send(rank.stream, first.data(), first.bytes(), 2);
    rank.group.send(rank.stream, second.data(), second.bytes(), 1);
  } else if (me == 1) {
    rank.group.receive(rank.stream, received.data(), received.bytes(), 0);
    rank.group.send(rank.stream, received.data(), received.bytes(), 2);
  } else if (me == 2) {
    rank.group.receive(rank.stream, received.data(), received.bytes(), 1);
    EXPECT_TRUE(received.values() == numbers(1, count));
    rank.group.receive(rank.stream, received.data(), received.bytes(), 0);
    EXPECT_TRUE(received.values() == numbers(0, count));
  }
  rank.group.wait_sends(rank.stream);
}

inline void one_message_can_be_waited_for_while_another_is_under_way(Rank& rank) {
  const int me = rank.group.rank();
  if (rank.group.size() < 3) return;
  // Rank 1 takes its message only when it has heard of rank 2 that rank 0 has waited for the other.
  const std::size_t count = (8 << 20) / sizeof(float);
  const Array<float> large(rank, numbers(0, count)), received(rank, count), word(rank, numbers(7, 1));
  if (me == 0) {
    rank.group.send(rank.stream, large.data(), large.bytes(), 1);
    const std::int64_t other = rank.group.send(rank.stream, large.data(), large.bytes(), 2);
    rank.group.wait_send(rank.stream, other);
    rank.group.send(rank.stream, word.data(), word.bytes(), 2);
  } else if (me == 2) {
    rank.group.receive(rank.stream, received.data(), received.bytes(), 0);
    rank.group.receive(rank.stream, word.data(), word.bytes(), 0);
    rank.group.send(rank.stream, word.data(), word.bytes(), 1);
  } else if (me == 1) {
    rank.group.receive(rank.stream, word.data(), word.bytes(), 2);
    rank.group.receive(rank.stream, received.data(), received.bytes(), 0);
    EXPECT_TRUE(received.values() == numbers(0, count));
  }
  rank.group.wait_sends(rank.stream);
}

inline void collectives_may_run_while_a_message_is_under_way(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  const std::size_t count = (512 << 10) / sizeof(float);
  const Array<float> mine(rank, numbers(me, count)), received(rank, count);
  rank.group.send(rank.stream, mine.data(), mine.bytes(), (me + 1) % size);
  const Array<std::int32_t> ones(rank, std::vector<std::int32_t>{1});
  rank.group.all_reduce(rank.stream, ones.data(), 1, DType::i32, Reduction::sum);
  EXPECT_EQ(ones.values().front(), size);
  const int previous = (me + size - 1) % size;
  rank.group.receive(rank.stream, received.data(), received.bytes(), previous);
  EXPECT_TRUE(received.values() == numbers(previous, count));
  rank.group.wait_sends(rank.stream);
}

inline void a_shift_hands_every_ranks_tensors_to_the_next(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank(), previous = (me + size - 1) % size;
  const Array<float> large(rank, numbers(me, rank.longest_buffer)), small(rank, numbers(me + 100, 3));
  const Array<float> first(rank, rank.longest_buffer), second(rank, 3);
  const ShiftBuffer tensors[] = {{large.data(), first.data(), large.bytes()},
                                 {small.data(), second.data(), small.bytes()}};
  shift(rank.group, rank.stream, tensors);
  EXPECT_TRUE(first.values() == numbers(previous, rank.longest_buffer));
  EXPECT_TRUE(second.values() == numbers(previous + 100, 3));
}

inline void a_rank_may_send_to_itself(Rank& rank) {
  const int me = rank.group.rank();
  const Array<float> sent(rank, numbers(me, 100)), received(rank, 100);
  rank.group.send(rank.stream, sent.data(), sent.bytes(), me);
  rank.group.receive(rank.stream, received.data(), received.bytes(), me);
  rank.group.wait_sends(rank.stream);
  EXPECT_EQ(received.values(), sent.values());
}

inline void split_groups_by_color_in_rank_order(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  const std::unique_ptr<Communicator> half = rank.group.split(me % 2);
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(half->rank(), me / 2);
  EXPECT_EQ(half->size(), (size + 1 - me % 2) / 2);
  const Array<std::int32_t> mine(rank, std::vector<std::int32_t>{me});
  const Array<std::int32_t> members(rank, static_cast<std::size_t>(half->size()));
  half->all_gather(rank.stream, mine.data(), members.data(), mine.bytes());
  std::vector<std::int32_t> expected;
  for (int other = me % 2; other < size; other += 2) expected.push_back(other);
  EXPECT_EQ(members.values(), expected);

  const std::unique_ptr<Communicator> alone = half->split(half->rank());
  EXPECT_EQ(alone->size(), 1);
}

inline void a_negative_color_stays_out(Rank& rank) {
  const bool is_in = rank.group.rank() == rank.group.size() - 1;
  const std::unique_ptr<Communicator> last = rank.group.split(is_in ? 3 : -1);
  ASSERT_EQ(last != nullptr, is_in);
  if (is_in) {
    EXPECT_EQ(last->size(), 1);
  }
}

inline void groups_are_independent(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  const std::unique_ptr<Communicator> other = rank.group.split(0);
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  const Array<float> first(rank, std::vector{1.0f}), second(rank, std::vector{2.0f}), received(rank, 1);
  rank.group.send(rank.stream, first.data(), first.bytes(), next);
  rank.group.receive(rank.stream, received.data(), received.bytes(), previous);
  EXPECT_EQ(received.values().front(), 1.0f);
  rank.group.barrier();
  other->send(rank.stream, second.data(), second.bytes(), next);
  other->receive(rank.stream, received.data(), received.bytes(), previous);
  EXPECT_EQ(received.values().front(), 2.0f);
  rank.group.wait_sends(rank.stream);
  other->wait_sends(rank.stream);
}

/// Whichever is received first, wherever the other is.
inline void duplicates_are_independent(Rank& rank) {
  const int size = rank.group.size(), me = rank.group.rank();
  const std::unique_ptr<Communicator> other = connected_duplicate(rank.group);
  EXPECT_EQ(other->rank(), me);
  EXPECT_EQ(other->size(), size);
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  const Array<float> first(rank, std::vector{1.0f}), second(rank, std::vector{2.0f}), received(rank, 1);
  rank.group.send(rank.stream, first.data(), first.bytes(), next);
  other->send(rank.stream, second.data(), second.bytes(), next);
  other->receive(rank.stream, received.data(), received.bytes(), previous);
  EXPECT_EQ(received.values().front(), 2.0f);
  rank.group.receive(rank.stream, received.data(), received.bytes(), previous);
  EXPECT_EQ(received.values().front(), 1.0f);
  rank.group.wait_sends(rank.stream);
  other->wait_sends(rank.stream);
}

inline const std::vector<Case>& cases();

/// All cases, for backends that mostly are not there: one test, and one reason when it is skipped.
inline void run_all_cases(Rank& rank) {
  for (const Case& tested : cases()) {
    SCOPED_TRACE(tested.name);
    tested.run(rank);
  }
}

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"AllReduceSums", all_reduce_sums},
      {"AllReduceTakesTheMaximum", all_reduce_takes_the_maximum},
      {"AllReduceKnowsIntegers", all_reduce_knows_integers},
      {"AllReduceOfBf16RoundsOnce", all_reduce_of_bf16_rounds_once},
      {"AllReduceOfF16RoundsOnce", all_reduce_of_f16_rounds_once},
      {"ReductionsHaveTheSameBitsOnEveryRankAndInEveryRun",
       reductions_have_the_same_bits_on_every_rank_and_in_every_run},
      {"AllGatherLinesPartsUpByRank", all_gather_lines_parts_up_by_rank},
      {"ReduceScatterGivesEachRankItsPieceOfTheSum", reduce_scatter_gives_each_rank_its_piece_of_the_sum},
      {"AllToAllTransposesBlocks", all_to_all_transposes_blocks},
      {"BroadcastCopiesTheRootsData", broadcast_copies_the_roots_data},
      {"ReduceToOwnersSumsEachPieceAtItsOwner", reduce_to_owners_sums_each_piece_at_its_owner},
      {"BroadcastFromOwnersHandsEachPieceToAll", broadcast_from_owners_hands_each_piece_to_all},
      {"MessagesArriveInTheOrderSent", messages_arrive_in_the_order_sent},
      {"LargeMessagesCrossWithoutDeadlock", large_messages_cross_without_deadlock},
      {"SendsNeedNotBeReceivedInTheOrderOfTheirPeers",
       sends_need_not_be_received_in_the_order_of_their_peers},
      {"OneMessageCanBeWaitedForWhileAnotherIsUnderWay",
       one_message_can_be_waited_for_while_another_is_under_way},
      {"CollectivesMayRunWhileAMessageIsUnderWay", collectives_may_run_while_a_message_is_under_way},
      {"AShiftHandsEveryRanksTensorsToTheNext", a_shift_hands_every_ranks_tensors_to_the_next},
      {"ARankMaySendToItself", a_rank_may_send_to_itself},
      {"SplitGroupsByColorInRankOrder", split_groups_by_color_in_rank_order},
      {"ANegativeColorStaysOut", a_negative_color_stays_out},
      {"GroupsAreIndependent", groups_are_independent},
      {"DuplicatesAreIndependent", duplicates_are_independent},
  };
  return all;
}

}  // namespace alpa::conformance
