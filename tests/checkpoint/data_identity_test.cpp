#include "libalpa/checkpoint/data_identity.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const DataIdentity saved{"0123456789abcdef", 9999, "", 95, 100, 1, "5eed"};

std::string changes(const std::function<void(DataIdentity&)>& change) {
  DataIdentity here = saved;
  change(here);
  return data_changes(saved, here);
}

TEST(DataChanges, NameEachThatChanged) {
  EXPECT_EQ(changes([](DataIdentity&) {}), "");
  EXPECT_EQ(changes([](DataIdentity& d) { d.content = "fedcba9876543210"; }),
            "\n  data: 9999 tokens of content 01234567 then, 9999 tokens of content fedcba98 now");
  EXPECT_EQ(
      changes([](DataIdentity& d) { d.evaluation = "abcdef0123456789", d.windows = 99, d.order = "0dd"; }),
      "\n  split: 95 windows trained on, the rest held out then, 99 windows trained on, evaluation data "
      "abcdef01 now");
  EXPECT_EQ(changes([](DataIdentity& d) { d.windows = 96, d.order = "0dd"; }),
            "\n  split: 95 windows trained on, the rest held out then, 96 windows trained on, the rest held "
            "out now");
  EXPECT_EQ(changes([](DataIdentity& d) { d.seed = 2, d.order = "0dd"; }),
            "\n  order: seed 1, windows of 100 tokens then, seed 2, windows of 100 tokens now");
  EXPECT_EQ(changes([](DataIdentity& d) { d.sequence = 50, d.windows = 190, d.order = "0dd"; }),
            "\n  order: seed 1, windows of 100 tokens then, seed 1, windows of 50 tokens now");
  EXPECT_EQ(changes([](DataIdentity& d) { d.order = "0dd"; }),
            "\n  order: seed 1, windows of 100 tokens then, in another way now");
}

TEST(DataChanges, AreOfTheLengthAloneWhereACheckpointSaysNoMore) {
  DataIdentity old;
  old.length = 9999;
  EXPECT_EQ(data_changes(old, saved), "");
  old.length = 5000;
  EXPECT_EQ(data_changes(old, saved), "\n  data: 5000 tokens then, 9999 tokens of content 01234567 now");
}

TEST(CheckSameData, RefusesAChangeUnlessItIsAccepted) {
  DataIdentity here = saved;
  here.seed = 2;
  EXPECT_EQ(check_same_data("step.h5", 200, saved, saved, false), "");
  EXPECT_THAT(
      [&] { (void)check_same_data("step.h5", 200, saved, here, false); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'step.h5' was trained on other samples"), HasSubstr("order: "),
                                 HasSubstr("--accept-changed-data the run goes on with sample 200"))));
  EXPECT_THAT(check_same_data("step.h5", 200, saved, here, true),
              HasSubstr("goes on with sample 200, number 10 of epoch 2:\n  order: "));
}

TEST(CheckSameData, LetsCheckpointsGoOnThatDoNotSayTheirData) {
  DataIdentity old;
  old.length = 9999;
  EXPECT_THAT(check_same_data("step.h5", 200, old, saved, false), HasSubstr("does not say which data"));
  EXPECT_EQ(check_same_data("imported.h5", 0, {}, saved, false), "");
}

}  // namespace
}  // namespace alpa
