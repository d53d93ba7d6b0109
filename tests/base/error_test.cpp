#include "libalpa/base/error.h"

#include <gmock/gmock.h>

#include "libalpa/base/other_tools.h"

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
  EXPECT_EQ(nearest_name("auot", {"none", "auto"}), "auto");
  EXPECT_EQ(nearest_name("1F1B", {"gpipe", "1f1b"}), "1f1b");
  EXPECT_EQ(nearest_name("--dryrun", {"--dry-run", "--devices"}), "--dry-run");
  EXPECT_EQ(nearest_name("wide", {"width"}), "width");
  EXPECT_EQ(nearest_name("seed", {"keep"}), "");  // another word
}

TEST(NearestName, PrefersWhatOtherToolsCallSo) {
  EXPECT_EQ(nearest_name("gpu", {"cpu", "cuda"}), "cuda");
  EXPECT_EQ(nearest_name("--batch-size", {"--batching", "--batch"}), "--batch");
  EXPECT_EQ(nearest_name("gpus_per_node", {"nics_per_node", "devices_per_node"}), "devices_per_node");
}

TEST(OtherTools, CallThingsThatAreSetElsewhereHere) {
  EXPECT_THAT(where_set("--batch-size"), testing::StartsWith("batch in [training] of the model file"));
  EXPECT_THAT(where_set("nproc_per_node"), testing::HasSubstr("mpiexec -n N"));
  EXPECT_EQ(where_set("sparkle"), "");
  EXPECT_EQ(where_set(""), "");
  EXPECT_TRUE(is_set_elsewhere("--seed"));
  EXPECT_FALSE(is_set_elsewhere("lr"));
}

}  // namespace
}  // namespace alpa
