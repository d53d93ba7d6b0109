#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "libalpa/base/error.h"
#include "libalpa/comm/communicator.h"
#include "libalpa/comm/thread_group.h"
#include "libalpa/comm/thread_wire.h"

namespace alpa {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The texts of the errors that ranks other than `failing` saw, for a `body` in which that rank fails.
std::vector<std::string> errors_seen(int ranks,
                                     const std::function<void(int, Communicator&, Stream&)>& body) {
  std::mutex mutex;
  std::vector<std::string> texts;
  const auto run = [&](int rank, Communicator& group) {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    try {
      body(rank, group, *stream);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::peer) {
        const std::lock_guard lock(mutex);
        texts.push_back(error.what());
      }
      throw;
    }
  };
  try {
    run_on_threads(ranks, run);
    ADD_FAILURE() << "the failure was lost";
  } catch (const Error& error) {
    texts.push_back(std::string("rethrown: ") + error.what());
  }
  return texts;
}

const Error bad_input(ErrorKind::input, "the tokens are missing");
constexpr auto reported = "rank 1 has failed: the tokens are missing";

TEST(RunOnThreads, AFailingRankWakesTheOthersWhereverTheyWait) {
  std::int32_t values[4] = {};
  const std::vector<std::function<void(Communicator&, Stream&)>> waits{
      [](Communicator& group, Stream&) { group.barrier(); },
      [&](Communicator& group, Stream& stream) {
        group.all_reduce(stream, values, 1, DType::i32, Reduction::sum);
      },
      [&](Communicator& group, Stream& stream) { group.receive(stream, values, 4, 1); },
      [&](Communicator& group, Stream&) { group.split(0); },
  };
  for (const auto& wait : waits) {
    const std::vector<std::string> texts = errors_seen(4, [&](int rank, Communicator& group, Stream& stream) {
      if (rank == 1) throw bad_input;
      if (rank == 0) return wait(group, stream);
      group.barrier();
    });
    EXPECT_THAT(texts, SizeIs(4));
    EXPECT_THAT(texts.back(), "rethrown: the tokens are missing");
    EXPECT_THAT(std::vector<std::string>(texts.begin(), texts.end() - 1), Each(reported));
  }
}

TEST(RunOnThreads, AFailureReachesRanksThatWaitInAnotherGroup) {
  const std::vector<std::string> texts = errors_seen(3, [&](int rank, Communicator& group, Stream&) {
    const auto pair = group.split(rank == 1 ? -1 : 0);
    if (rank == 1) throw bad_input;
    if (rank == 0) pair->barrier();
    if (rank == 2) group.barrier();
  });
  EXPECT_THAT(texts, SizeIs(3));
}

TEST(RunOnThreads, CallsAfterAFailureFailAtOnce) {
  const std::vector<std::string> texts = errors_seen(2, [&](int rank, Communicator& group, Stream&) {
    if (rank == 1) throw bad_input;
    EXPECT_THROW(group.barrier(), Error);
    group.barrier();
  });
  EXPECT_THAT(texts, SizeIs(2));
}

TEST(RunOnThreads, WaitingForARankThatHasLeftIsAnErrorAndNotAHang) {
  const std::vector<std::string> texts = errors_seen(2, [&](int rank, Communicator& group, Stream&) {
    if (rank == 0) group.barrier();
  });
  EXPECT_THAT(texts.front(), "rank 1 has left while others wait for it");
}

TEST(RunOnThreads, AMessageOutlivesItsSender) {
  run_on_threads(2, [](int rank, Communicator& group) {
    const auto device = make_cpu_device(1);
    const auto stream = device->make_stream();
    std::int32_t value = rank;
    if (rank == 1) {
      group.send(*stream, &value, sizeof value, 0);
      return;
    }
    group.receive(*stream, &value, sizeof value, 1);
    EXPECT_EQ(value, 1);
  });
}

TEST(RunOnThreads, ABarrierHoldsUntilEveryRankHasCome) {
  std::atomic<int> arrived = 0;
  run_on_threads(4, [&](int, Communicator& group) {
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      group.barrier();
      EXPECT_GE(arrived, 4 * round);
      group.barrier();
    }
  });
  EXPECT_EQ(arrived, 400);
}

TEST(RunOnThreads, AMessageOfAnotherSizeIsRefusedAndBothSizesAreTold) {
  const std::vector<std::string> texts = errors_seen(2, [&](int rank, Communicator& group, Stream& stream) {
    std::int32_t values[2] = {};
    if (rank == 1)
      group.send(stream, values, 8, 0);
    else
      group.receive(stream, values, 4, 1);
  });
  EXPECT_THAT(texts.back(), HasSubstr("rank 0 expects 4 bytes from rank 1, which sent 8"));
}

TEST(SelfCommunicator, RefusesToWaitForAMessageThatCannotCome) {
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  const auto group = make_self_communicator();
  float value = 0;
  EXPECT_THAT([&] { group->receive(*stream, &value, sizeof value, 0); },
              ::testing::ThrowsMessage<Error>(HasSubstr("has sent itself nothing")));
  group->send(*stream, &value, sizeof value, 0);
  EXPECT_THAT([&] { group->wait_sends(*stream); },
              ::testing::ThrowsMessage<Error>(HasSubstr("has not received yet")));
}

TEST(ThreadWire, DoesNotWaitForARankThatLeftAfterItsMessage) {
  ThreadWorld world(3);
  const auto group = std::make_shared<ThreadGroup>(world, std::vector<int>{0, 1, 2});
  ThreadWire wire(group, 0);
  char first = 0, second = 0;
  const int of_1 = wire.irecv(&first, 1, 1, 0), of_2 = wire.irecv(&second, 1, 2, 0);
  group->put_message(2, 0, 0, Bytes{std::byte{2}});
  world.finish(2);
  wire.rest();  // something has happened
  EXPECT_FALSE(wire.test(of_1));
  const std::jthread slow([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    group->put_message(1, 0, 0, Bytes{std::byte{1}});
  });
  wire.rest();
  EXPECT_TRUE(wire.test(of_1));
  EXPECT_TRUE(wire.test(of_2));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

}  // namespace
}  // namespace alpa
