// Servers that hold the states (Plan::staleness): devices push gradients and take parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/comm/heard_communicator.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::Le;
using testing::Pointwise;

TinyCase held(const std::string& model, int devices, int servers, int staleness, int micro_batches = 1) {
  TinyCase c{model, "data-parallel", devices, micro_batches};
  c.nodes = devices;
  c.servers = servers;
  c.staleness = staleness;
  return c;
}

/// That the curves are those of the same sums, added up in other orders.
void expect_alike(const TinyCurve& curve, const TinyCurve& reference) {
  ASSERT_EQ(curve.losses.size(), reference.losses.size());
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]))
        << "step " << step;
    EXPECT_NEAR(curve.norms[step], reference.norms[step], 1e-5 * reference.norms[step]) << "step " << step;
  }
  EXPECT_NEAR(curve.evaluation, reference.evaluation, 1e-5 * reference.evaluation);
  ASSERT_EQ(curve.metrics.size(), reference.metrics.size());
  for (std::size_t step = 0; step < curve.metrics.size(); ++step)
    EXPECT_THAT(curve.metrics[step], Pointwise(DoubleNear(1e-5), reference.metrics[step])) << "step " << step;
}

class StatesAtServers : public testing::TestWithParam<TinyCase> {};

TEST_P(StatesAtServers, TrainAsOneDeviceWhereNoneIsAhead) {
  const TinyTraining training(GetParam());
  const TinyCurve curve = training.run_on_threads(5);
  expect_alike(curve, TinyTraining({GetParam().model, "serial"}).run_on_threads(5));
  EXPECT_THAT(curve.leads, Each(0.0));
  EXPECT_EQ(curve.leads.size(), 5u);
}

TEST_P(StatesAtServers, HaveTheSameBitsWhereNoneIsAhead) {
  TinyTraining training(GetParam());
  expect_same_bits_in_any_order(training);
}

TEST_P(StatesAtServers, LeaveDevicesWithoutStatesOfUpdates) {
  const TinyTraining training(GetParam());
  const MeshProgram &mesh = training.program().meshes.front(), &servers = *training.program().servers;
  EXPECT_EQ(mesh.memory.optimizer, 0);
  EXPECT_GT(servers.memory.optimizer, 0);
}

INSTANTIATE_TEST_SUITE_P(Tiny, StatesAtServers,
                         testing::Values(held("gpt", 2, 1, 0), held("gpt", 4, 3, 0), held("gpt", 4, 2, 0, 2),
                                         held("llama", 2, 2, 0), held("unclipped", 4, 1, 0),
                                         held("lstm", 2, 2, 0)),
                         [](const auto& each) { return each.param.name(); });

// A parameter's at one server in several pieces, which others lie between, as a plan's file may say.
TEST(RowsAtServers, MayBeAnywhere) {
  TinyTraining training(held("gpt", 2, 2, 0));
  std::vector<GradientSync> sync = training.plan().sync;
  for (GradientSync& each : sync) {
    std::int64_t rows = 0;
    for (const OwnedRows& part : each.owners) rows += part.rows;
    if (rows >= 4) each.owners = {{1, 1}, {rows / 2, 0}, {rows - 1 - rows / 2, 1}};
  }
  ASSERT_NE(sync, training.plan().sync);
  training.set_sync(sync);
  expect_alike(training.run_on_threads(5), TinyTraining({"gpt", "serial"}).run_on_threads(5));
}

/// Ranks that all train, each by itself; `delay(rank)` is called between its steps.
TinyCurve run_with(const TinyTraining& training, int steps, const std::function<void(int)>& delay) {
  TinyCurve curve;
  run_on_threads(training.plan().ranks(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    const TinyCurve own = training.run(steps, *device, world, {}, [&](Executor&) { delay(rank); });
    if (rank == 0) curve = own;
  });
  return curve;
}

/// [rank] What each has seen of it.
std::vector<TinyCurve> run_on_every_rank(const TinyTraining& training, int steps) {
  std::vector<TinyCurve> curves(static_cast<std::size_t>(training.plan().ranks()));
  run_on_threads(training.plan().ranks(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    curves[static_cast<std::size_t>(rank)] = training.run(steps, *device, world);
  });
  return curves;
}

// Before evaluations and saves: as often as that is, each step is known once, in its order, by all alike.
TEST(StaleStates, AreKnownToAllAlikeWheneverTheyAreAskedFor) {
  for (const int finish_every : {0, 1, 2, 3, 4, 5}) {
    TinyTraining training(held("lstm", 2, 2, 3));
    training.finish_every(finish_every);
    const std::vector<TinyCurve> curves = run_on_every_rank(training, 11);
    for (const TinyCurve& curve : curves) {
      ASSERT_EQ(curve.losses.size(), 11u);
      EXPECT_EQ(curve.losses, curves.front().losses);
      EXPECT_EQ(curve.norms, curves.front().norms);
      EXPECT_EQ(curve.metrics, curves.front().metrics);
      EXPECT_EQ(curve.leads, curves.front().leads);
    }
    // Where no step is ahead of another, it is as on one device.
    if (finish_every == 1) expect_alike(curves.front(), TinyTraining({"lstm", "serial"}).run_on_threads(11));
  }
}

TEST(StaleStates, KeepDevicesWithinTheBoundOfASlowOne) {
  for (const int staleness : {0, 1, 3}) {
    const TinyTraining training(held("gpt", 4, 2, staleness));
    const TinyCurve curve = run_with(training, 12, [](int rank) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    });
    ASSERT_EQ(curve.losses.size(), 12u);
    ASSERT_EQ(curve.leads.size(), 12u);
    EXPECT_THAT(curve.leads, Each(Le(staleness)));
    // The others are waiting for the slow one by then: a step of theirs is far shorter than its pause.
    EXPECT_EQ(*std::ranges::max_element(curve.leads), staleness);
    EXPECT_LT(curve.losses.back(), curve.losses.front());
  }
}

/// Servers whose parameters of a step go out only when all devices have pushed the gradients of so many steps
/// after it: every device computes on parameters that are as old as they may be.
class LateServers {
 public:
  LateServers(int devices, int servers, int staleness, int steps)
      : devices_(devices),
        servers_(servers),
        staleness_(staleness),
        steps_(steps),
        pushed_(static_cast<std::size_t>(devices)) {}

  void push(int device) {
    const std::lock_guard lock(mutex_);
    ++pushed_[static_cast<std::size_t>(device)];
    changed_.notify_all();
  }

  void wait_to_publish(int step) {
    std::unique_lock lock(mutex_);
    const int wanted = std::min(step + staleness_, steps_ - 1) + 1;
    changed_.wait(lock, [&] {
      return std::ranges::all_of(pushed_, [&](int pushes) { return pushes >= wanted * servers_; });
    });
  }

  int devices() const { return devices_; }

 private:
  int devices_, servers_, staleness_, steps_;
  std::vector<int> pushed_;  ///< [device] messages
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Of which every message is one to or from a server.
class LateCommunicator : public HeardCommunicator {
 public:
  LateCommunicator(std::unique_ptr<Communicator> inner, LateServers& late)
      : HeardCommunicator(std::move(inner)), late_(late) {}

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    if (rank() >= late_.devices() && to == 0) late_.wait_to_publish(published_++);
    const std::int64_t message = HeardCommunicator::send(stream, data, bytes, to);
    if (rank() < late_.devices()) late_.push(rank());
    return message;
  }

 private:
  LateServers& late_;
  int published_ = 0;
};

class LateWorld : public HeardCommunicator {
 public:
  LateWorld(std::unique_ptr<Communicator> inner, LateServers& late)
      : HeardCommunicator(std::move(inner)), late_(late) {}
  std::unique_ptr<Communicator> duplicate() override {
    return std::make_unique<LateCommunicator>(HeardCommunicator::duplicate(), late_);
  }

 private:
  LateServers& late_;
};

/// Whose messages leave late: what is sent is read when it leaves.
class SlowCommunicator : public HeardCommunicator {
 public:
  using HeardCommunicator::HeardCommunicator;

  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    stream_ = &stream;
    waiting_.push_back({data, bytes, to, ++sent_});
    return sent_;
  }
  bool has_left(Stream& stream, std::int64_t message) override {
    look(stream);
    return std::ranges::find(waiting_, message, &Waiting::number) == waiting_.end();
  }
  bool has_arrived(Stream& stream, std::int64_t message) override {
    look(stream);
    return HeardCommunicator::has_arrived(stream, message);
  }
  void rest(std::string_view during) override {
    if (waiting_.empty()) return HeardCommunicator::rest(during);
    leave(*stream_);
  }
  void wait_sends(Stream& stream) override {
    while (!waiting_.empty()) leave(stream);
    HeardCommunicator::wait_sends(stream);
  }

 private:
  struct Waiting {
    const void* data;
    std::int64_t bytes;
    int to;
    std::int64_t number;
  };

  /// The oldest leaves every so many times that its rank looks.
  void look(Stream& stream) {
    constexpr int looks = 7;
    if (++looks_ % looks == 0 && !waiting_.empty()) leave(stream);
  }
  void leave(Stream& stream) {
    const Waiting first = waiting_.front();
    waiting_.erase(waiting_.begin());
    HeardCommunicator::send(stream, first.data, first.bytes, first.to);
  }

  std::vector<Waiting> waiting_;
  Stream* stream_ = nullptr;
  std::int64_t sent_ = 0;
  int looks_ = 0;
};

class SlowWorld : public HeardCommunicator {
 public:
  using HeardCommunicator::HeardCommunicator;
  std::unique_ptr<Communicator> duplicate() override {
    return std::make_unique<SlowCommunicator>(HeardCommunicator::duplicate());
  }
};

// Memory of messages is not used again before they have left.
TEST(StaleStates, AreWhatTheyWereWhenTheyWereSent) {
  const TinyTraining training(held("gpt", 4, 2, 0));
  TinyCurve curve;
  run_on_threads(6, [&](int rank, Communicator& world) {
    SlowWorld slow(world.duplicate());
    const std::unique_ptr<Device> device = make_cpu_device(1);
    const TinyCurve own = training.run(5, *device, slow);
    if (rank == 0) curve = own;
  });
  EXPECT_EQ(curve.losses, training.run_on_threads(5).losses);
}

// On parameters of exactly s steps before, a step computes what one does that makes its updates s steps late:
// its first s updates are of nothing, and without momentum and decay change nothing.
TEST(StaleStates, TrainAsDelayedGradientsDoWhereAllAreAsOldAsTheyMayBe) {
  constexpr int steps = 8;
  for (const int staleness : {1, 2}) {
    TinyCase c = held("unclipped", 2, 2, staleness);
    TinyCase delayed{c.model, "serial"};
    c.optimizer = delayed.optimizer = OptimizerKind::sgd;
    c.weight_decay = delayed.weight_decay = 0;
    delayed.gradient_delay = staleness;
    const TinyTraining training(c);
    LateServers late(2, 2, staleness, steps);
    TinyCurve curve;
    run_on_threads(4, [&](int rank, Communicator& world) {
      LateWorld late_world(world.duplicate(), late);
      const std::unique_ptr<Device> device = make_cpu_device(1);
      const TinyCurve own = training.run(steps, *device, late_world);
      if (rank == 0) curve = own;
    });
    const TinyCurve reference = TinyTraining(delayed).run_on_threads(steps);
    ASSERT_EQ(curve.losses.size(), reference.losses.size());
    for (std::size_t step = 0; step < curve.losses.size(); ++step)
      EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * reference.losses[step]) << step;
    EXPECT_THAT(curve.leads, Each(Le(staleness)));
    EXPECT_EQ(curve.leads.back(), staleness);
    // One that is not late trains otherwise.
    delayed.gradient_delay = 0;
    const TinyCurve prompt = TinyTraining(delayed).run_on_threads(steps);
    EXPECT_GT(std::abs(prompt.losses.back() - curve.losses.back()), 1e-4 * prompt.losses.back());
  }
}

}  // namespace
}  // namespace alpa
