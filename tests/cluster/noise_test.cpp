#include "libalpa/cluster/noise.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Three operators whose repetitions differ by these parts of their medians, and a reference that took these
/// seconds in one run.
Profile profile_of(std::vector<double> spreads, std::vector<double> reference) {
  Profile profile;
  for (std::size_t i = 0; i < spreads.size(); ++i)
    profile.operators["gelu f32[" + std::to_string(i) + "]"] = {.median_s = 2e-3,
                                                                .sample_spread_s = 2e-3 * spreads[i]};
  for (const double seconds : reference) profile.reference.push_back({"gelu f32[0]", 0, 0, seconds, 0});
  return profile;
}

TEST(Noise, IsTheMedianSpreadOfOperatorsAndTheDriftOfTheReference) {
  const Noise noise = noise_of(profile_of({0.5, 0.03, 0.01}, {1e-3, 1.05e-3, 1.02e-3}));
  EXPECT_DOUBLE_EQ(noise.typical_spread, 0.03);
  EXPECT_DOUBLE_EQ(noise.drift, 1.05e-3 / 1e-3 - 1);
  EXPECT_FALSE(noise.is_busy());
  EXPECT_EQ(noise_warning(noise), "");
}

TEST(Noise, OfNothingMeasuredIsNone) {
  EXPECT_FALSE(noise_of({}).is_busy());
  EXPECT_EQ(noise_of({}).drift, 0);
}

// Jobs on other nodes may have other clocks: what drifts is one run.
TEST(Noise, ComparesTheReferenceWithinARunAlone) {
  Profile profile = profile_of({}, {1e-3, 1e-3});
  profile.reference[1].run = 1;
  EXPECT_EQ(noise_of(profile).drift, 0);
}

TEST(Noise, OfOperatorsThatFailedIsNotCounted) {
  Profile profile = profile_of({0.02}, {});
  profile.operators["relu f32[1]"] = {.status = SampleStatus::failed};
  EXPECT_DOUBLE_EQ(noise_of(profile).typical_spread, 0.02);
}

TEST(Noise, OfABusyMachineIsSaidWithWhatToTry) {
  EXPECT_THAT(noise_warning(noise_of(profile_of({0.25}, {1e-3, 1e-3}))),
              AllOf(HasSubstr("repetitions of an operator typically differ by 25 % (at most 10 %"),
                    Not(HasSubstr("longer at one time")), HasSubstr("Try: ")));
  EXPECT_THAT(noise_warning(noise_of(profile_of({0.01}, {1e-3, 1.5e-3}))),
              AllOf(HasSubstr("one operator took up to 50 % longer at one time than at another"),
                    Not(HasSubstr("repetitions of an operator"))));
}

}  // namespace
}  // namespace alpa
