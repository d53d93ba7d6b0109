#include "libalpa/base/error.h"

#include <gmock/gmock.h>

namespace alpa {
namespace {

TEST(Error, SaysWhatHappenedWhatToTryAndWhileDoingWhat) {
  try {
    in_step("reading plan 'a.h5'", [] {
      throw Error(ErrorKind::allocation, "plan wants 16 devices, this job has 8", "srun --ntasks 16");
    });
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "plan wants 16 devices, this job has 8\n  try: srun --ntasks 16\n  while reading plan 'a.h5'");
    EXPECT_EQ(error.kind(), ErrorKind::allocation);
  }
}

TEST(NearestName, FindsTheNameOneTypoAway) {
  EXPECT_EQ(nearest_name("stpes", {"seed", "steps", "batch"}), "steps");
  EXPECT_EQ(nearest_name("zzz", {"seed", "steps", "batch"}), "");
}

}  // namespace
}  // namespace alpa
