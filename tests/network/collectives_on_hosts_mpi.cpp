// Two ranks on each of two emulated hosts: results of collectives, and what passes the hosts' network
// interfaces; messages whose sender computes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>

#include "libalpa/base/clock.h"
#include "libalpa/base/collective_traffic.h"
#include "tests/comm/conformance_rank.h"
#include "tests/mpi_main.h"
#include "tests/network/interface_bytes.h"

namespace alpa {
namespace {

using conformance::numbers;

constexpr GroupShape kHosts{2, 2};
constexpr std::size_t kCount = 1 << 20;
constexpr auto kBytes = static_cast<std::int64_t>(4 * kCount);

class CollectivesOnHosts : public testing::Test {
 protected:
  CollectivesOnHosts() { world_->set_nodes(consecutive_nodes(world_->size(), kHosts.per_node)); }

  /// Makes `call` and holds what this rank has sent, and what has left its host, to collective_traffic().
  template <class Call>
  void expect_traffic(CollectiveKind kind, Call call) {
    const CollectiveTraffic expected = collective_traffic(kind, kHosts, kBytes);
    expect_sent(expected, kHosts.per_node * expected.between_nodes, call);
  }

  /// values_, in two pieces with owners on different hosts.
  std::array<OwnedPiece, 2> pieces() {
    return {{{values_.data(), kBytes / 4, 1}, {values_.data() + kCount / 4, kBytes / 4 * 3, 3}}};
  }

  /// Likewise, of those, to owners_traffic().
  template <class Call>
  void expect_traffic_of_owners(CollectiveKind kind, Call call) {
    const std::vector<double> parts{0, kBytes / 4, 0, kBytes / 4 * 3};
    const auto sent_by = [&](int rank) { return owners_traffic(kind, kHosts, parts, rank); };
    const int first = rank_ / 2 * 2;  // of this host
    expect_sent(sent_by(rank_), sent_by(first).between_nodes + sent_by(first + 1).between_nodes, call);
  }

  template <class Call>
  void expect_sent(const CollectiveTraffic& expected, double leaves_host, Call call) {
    call();  // the first makes connections
    world_->barrier();
    const SentBytes before = world_->sent();
    const double left_before = interface_bytes();
    world_->barrier();  // nobody of the host has begun before that
    call();
    world_->barrier();
    const double left = interface_bytes() - left_before;
    world_->barrier();
    EXPECT_EQ(static_cast<double>(world_->sent().within_node - before.within_node), expected.within_node);
    EXPECT_EQ(static_cast<double>(world_->sent().between_nodes - before.between_nodes),
              expected.between_nodes);
    expect_left(left, leaves_host);
  }

  const int rank_ = mpi_session().rank();
  const std::unique_ptr<Device> device_ = make_cpu_device(1);
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  const std::unique_ptr<Communicator> world_ = mpi_session().make_communicator(*device_);
  std::vector<float> values_ = numbers(rank_, kCount), others_ = std::vector<float>(kCount);
};

TEST_F(CollectivesOnHosts, RanksAreOnThem) {
  ASSERT_EQ(mpi_session().nodes(), kHosts.nodes);
  ASSERT_EQ(mpi_session().ranks_on_node(), kHosts.per_node);
}

TEST_F(CollectivesOnHosts, AllReduce) {
  expect_traffic(CollectiveKind::all_reduce, [&] {
    values_ = numbers(rank_, kCount);
    world_->all_reduce(*stream_, values_.data(), kCount, DType::f32, Reduction::sum);
  });
  EXPECT_TRUE(values_ == conformance::sum_by_nodes<float>(kHosts, kCount));
}

TEST_F(CollectivesOnHosts, ReduceScatter) {
  expect_traffic(CollectiveKind::reduce_scatter, [&] {
    values_ = numbers(rank_, kCount);
    world_->reduce_scatter(*stream_, values_.data(), others_.data(), kCount / 4, DType::f32, Reduction::sum);
  });
  const std::vector<float> sum = conformance::sum_by_nodes<float>(kHosts, kCount);
  EXPECT_TRUE(std::equal(sum.begin() + rank_ * std::ptrdiff_t{kCount / 4},
                         sum.begin() + (rank_ + 1) * std::ptrdiff_t{kCount / 4}, others_.begin()));
}

TEST_F(CollectivesOnHosts, AllGather) {
  expect_traffic(CollectiveKind::all_gather,
                 [&] { world_->all_gather(*stream_, values_.data(), others_.data(), kBytes / 4); });
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(others_[static_cast<std::size_t>(rank) * kCount / 4 + 7], conformance::number(rank, 7));
}

TEST_F(CollectivesOnHosts, ReduceToOwnersAndBroadcastBack) {
  expect_traffic_of_owners(CollectiveKind::reduce_scatter, [&] {
    values_ = numbers(rank_, kCount);
    world_->reduce_to_owners(*stream_, pieces(), DType::f32, Reduction::sum);
  });
  expect_traffic_of_owners(CollectiveKind::all_gather,
                           [&] { world_->broadcast_from_owners(*stream_, pieces()); });
  EXPECT_TRUE(values_ == conformance::sum_by_nodes<float>(kHosts, kCount));
}

TEST_F(CollectivesOnHosts, AllToAll) {
  expect_traffic(CollectiveKind::all_to_all,
                 [&] { world_->all_to_all(*stream_, values_.data(), others_.data(), kBytes / 4); });
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(others_[rank * kCount / 4 + 7],
              conformance::number(static_cast<int>(rank), static_cast<std::size_t>(rank_) * kCount / 4 + 7));
}

TEST_F(CollectivesOnHosts, MessagesGoOnWhileTheirSenderOnlyMovesThem) {
  constexpr int from = 0, to = 2;  // on different hosts
  std::array<char, 256> name{};
  if (rank_ == from)
    fmt::format_to_n(name.data(), name.size() - 1, "{}/alpa-arrived-{}-{}",
                     std::filesystem::temp_directory_path().string(), getpid(), std::random_device()());
  world_->broadcast(*stream_, name.data(), name.size(), from);
  const std::filesystem::path arrived = name.data();  // which says so without the network
  if (rank_ == to) {
    world_->receive(*stream_, others_.data(), kBytes, from);
    std::ofstream(arrived).flush();
  }
  if (rank_ == from) {
    world_->send(*stream_, values_.data(), kBytes, to);
    const double give_up_s = monotonic_s() + 20;
    while (!exists(arrived) && monotonic_s() < give_up_s) world_->move_messages();
    EXPECT_TRUE(exists(arrived));
    world_->wait_sends(*stream_);
  }
  world_->barrier();
  if (rank_ == to) {
    EXPECT_EQ(others_[7], conformance::number(from, 7));
    remove(arrived);
  }
}

}  // namespace
}  // namespace alpa
