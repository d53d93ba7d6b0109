#include <gtest/gtest.h>

#include "tests/runtime/schedules_and_transfers.h"

namespace alpa {
namespace {

class ScheduleAndTransfer : public testing::TestWithParam<TinyCase> {};

TEST_P(ScheduleAndTransfer, TrainsAsSerial) {
  static const TinyCurve serial = TinyTraining({.model = "gpt", .method = "serial"}).run_on_threads(5);
  TinyTraining training(GetParam());
  EXPECT_EQ(passes_on(training.program()), GetParam().transfers != "send-receive");
  const TinyCurve run = training.run_on_threads(5);
  expect_as_serial(run, serial);

  const TinyCurve drawn = training.run_on_threads(5, [] { return make_checked_cpu_device(1); });
  EXPECT_EQ(drawn.losses, run.losses);
  training.set_overlap(Overlap::all);
  EXPECT_EQ(training.run_on_threads(5).losses, run.losses);
}

INSTANTIATE_TEST_SUITE_P(Every, ScheduleAndTransfer, testing::ValuesIn(schedules_and_transfers()),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
