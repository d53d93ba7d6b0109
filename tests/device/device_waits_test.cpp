#include "libalpa/device/device_waits.h"

#include <gmock/gmock.h>

#include <vector>

namespace alpa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Waits : public ::testing::Test {
 protected:
  Waits() {
    waits.limit(
        {2, 5}, [this](const std::string& what) { warnings.push_back(what); },
        [this](const Error& error) { given_up.push_back(error); });
  }

  void look(int times, double awake_s = 1) {
    for (int i = 0; i < times; ++i) waits.look(awake_s);
  }

  DeviceWaits waits;
  std::vector<std::string> warnings;
  std::vector<Error> given_up;
};

TEST_F(Waits, AreReportedOnceAndGivenUpInTheEnd) {
  const DeviceWaits::Call call(waits, "cudaStreamSynchronize");
  look(1 + 4);  // the first look only finds the call
  EXPECT_THAT(warnings, ElementsAre("cudaStreamSynchronize has lasted 2.00 s: another rank is late, or NCCL "
                                    "does not reach it"));
  EXPECT_THAT(given_up, IsEmpty());
  look(1);
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].kind(), ErrorKind::peer);
  EXPECT_THAT(given_up[0].what(), HasSubstr("cudaStreamSynchronize has lasted 5.00 s: another rank hangs"));
  EXPECT_THAT(given_up[0].what(), HasSubstr("--hang-timeout"));
}

TEST_F(Waits, OfManyShortCallsAreNoLongOne) {
  for (int i = 0; i < 20; ++i) {
    const DeviceWaits::Call call(waits, "ncclAllReduce");
    look(2);
  }
  look(20);
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_THAT(given_up, IsEmpty());
}

TEST_F(Waits, AreThoseOfTheInnerCallWhileItLasts) {
  const DeviceWaits::Call outer(waits, "the queueing of an instruction");
  look(2);
  {
    const DeviceWaits::Call inner(waits, "ncclSend");
    look(1 + 2);
    EXPECT_THAT(warnings, ElementsAre(HasSubstr("ncclSend has lasted")));
  }
  look(1 + 5);
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_THAT(given_up[0].what(), HasSubstr("the queueing of an instruction has lasted 5.00 s"));
}

TEST_F(Waits, DoNotCountTimeInWhichTheProcessWasSuspended) {
  const DeviceWaits::Call call(waits, "cudaMalloc");
  look(1);
  look(4, 3600);
  EXPECT_THAT(given_up, IsEmpty());
}

TEST(WaitsWithoutLimits, LastForEver) {
  DeviceWaits waits;
  const DeviceWaits::Call call(waits, "cudaMalloc");
  for (int i = 0; i < 100'000; ++i) waits.look(1);
}

TEST(EndOfAProcess, HasTheErrorsStatus) {
  EXPECT_EXIT(end_process(Error(ErrorKind::peer, "rank 1 hangs", "end it")), ::testing::ExitedWithCode(7),
              "error: rank 1 hangs\n  try: end it");
}

}  // namespace
}  // namespace alpa
