// What a GPU has in place before ranks talk to each other: CUDA cannot always get it while a message waits.
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/trainer/train.h"
#include "tests/h5/temporary_folder.h"
#include "tests/kernels/emulation/emulated_device.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// A rank alone that notes what had been launched when it was first asked for a message.
class NotingCommunicator final : public Communicator {
 public:
  const std::set<const void*>& launched_before() const { return launched_; }

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void start(Stream& stream, const CollectiveCall& call) override {
    note();
    alone_->start(stream, call);
  }
  std::int64_t send(Stream& stream, const void* data, std::int64_t bytes, int to) override {
    note();
    return alone_->send(stream, data, bytes, to);
  }
  bool has_left(Stream& stream, std::int64_t message) override { return alone_->has_left(stream, message); }
  std::int64_t start_receive(Stream& stream, void* data, std::int64_t bytes, int from) override {
    note();
    return alone_->start_receive(stream, data, bytes, from);
  }
  void wait_sends(Stream& stream) override { alone_->wait_sends(stream); }
  void barrier() override {}
  std::unique_ptr<Communicator> split(int color) override { return alone_->split(color); }

 private:
  void note() {
    if (launched_.empty()) launched_ = emulation::launched;
  }

  std::unique_ptr<Communicator> alone_ = make_self_communicator();
  std::set<const void*> launched_;
};

class FirstStepOf : public testing::TestWithParam<const char*> {};

TEST_P(FirstStepOf, HasLaunchedEveryKernelBeforeTheFirstMessage) {
  const TinyTraining training({GetParam(), "serial", 1, 2});
  const std::unique_ptr<Device> device = emulation::make_device(emulation::Order::ascending);
  emulation::launched.clear();
  NotingCommunicator world;
  training.run(1, *device, world);  // evaluates too
  EXPECT_THAT(world.launched_before(), Not(IsEmpty()));
  EXPECT_EQ(world.launched_before(), emulation::launched);
}

INSTANTIATE_TEST_SUITE_P(Models, FirstStepOf, testing::Values("gpt", "tree_lstm", "tree_rounds", "graph_gru"),
                         [](const auto& model) { return std::string(model.param); });

TEST(FirstStep, HasOneHandleForTheProductsOfADevice) {
  const TinyTraining training({"mlp", "serial", 1, 2});
  const std::unique_ptr<Device> device = emulation::make_device(emulation::Order::ascending);
  const int before = emulation::product_libraries_made();
  training.run(1, *device, *make_self_communicator());
  EXPECT_EQ(emulation::product_libraries_made() - before, 1);
}

// Modules of libraries, workspaces and NCCL's communicators come when the arena is there.
TEST(FirstStep, IsRefusedWhereTheArenaLeavesNothingForLibraries) {
  const TinyTraining training({"mlp", "serial", 1, 2});
  const std::unique_ptr<Device> device = emulation::make_device(emulation::Order::ascending),
                                host = make_cpu_device(1);
  const std::unique_ptr<Communicator> data = make_self_communicator(), control = make_self_communicator();
  const TemporaryFolder folder;
  TrainSettings settings;
  settings.data = "synthetic:60";
  settings.run_dir = folder.path() / "run";
  settings.dry_run = true;
  Log log("test", LogLevel::off);
  StopRequest stop;
  const auto dry_run = [&](std::int64_t free_bytes) {
    emulation::free_bytes = free_bytes;
    return train(training.plan(), training.graph(), training.options(), settings,
                 {*device, *data, *host, *control, *control}, stop, {}, log);
  };
  const std::int64_t gib = 1 << 30;
  EXPECT_EQ(dry_run(3 * gib), 0);
  EXPECT_THAT(
      [&] { dry_run(2 * gib); },
      ThrowsMessage<Error>(HasSubstr("and 2.00 GiB are kept for CUDA and its libraries, 2.00 GiB is there")));
  emulation::free_bytes = 0;
}

}  // namespace
}  // namespace alpa
