#include "libalpa/checkpoint/run_folder.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libalpa/base/error.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class RunFolder : public ::testing::Test {
 protected:
  void save(std::int64_t step) { StatesInMemory::whole(0).save(checkpoint_path(run_, step), step); }
  void put(const std::string& name, const std::string& text = "not a checkpoint") {
    fs::create_directories(run_ / "checkpoints");
    std::ofstream(run_ / "checkpoints" / name) << text;
  }
  void truncate(std::int64_t step) {
    const fs::path path = checkpoint_path(run_, step);
    fs::resize_file(path, fs::file_size(path) / 2);
  }
  std::int64_t resumed_step(const std::string& resume) {
    const auto found = find_resume_point(resume, run_, log_);
    return found ? found->facts.step : -1;
  }
  /// What `body` logs, at the level of information and above.
  template <class Body>
  std::string logged(Body&& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }

  TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "run";
  Log log_{"alpa-train", LogLevel::info};
};

TEST_F(RunFolder, ListsCheckpointsByNumberAndNothingElse) {
  EXPECT_THAT(checkpointed_steps(run_), IsEmpty());
  for (const char* name :
       {"step-100000000.h5", "step-00000009.h5", "step-00000010.h5", "step-11.h5", "step-.h5",
        "step-00000012.h5.partial-1f", "step-00000013.h5~", "notes.txt", "step--0000014.h5"})
    put(name);
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(9, 10, 100'000'000));
}

TEST_F(RunFolder, AutoResumesFromTheNewestOrStartsAfresh) {
  EXPECT_THAT(logged([&] { EXPECT_EQ(resumed_step("auto"), -1); }),
              HasSubstr("starting afresh: no checkpoint in"));
  save(9);
  save(10);
  EXPECT_THAT(logged([&] { EXPECT_EQ(resumed_step("auto"), 10); }), HasSubstr("resuming from step 10"));
}

TEST_F(RunFolder, MustRefusesAFreshStart) {
  EXPECT_THAT([&] { resumed_step("must"); },
              ThrowsMessage<Error>(HasSubstr("--resume must: there is no checkpoint")));
  save(3);
  logged([&] { EXPECT_EQ(resumed_step("must"), 3); });
}

TEST_F(RunFolder, NeverStartsAfresh) {
  save(3);
  EXPECT_THAT(logged([&] { EXPECT_EQ(resumed_step("never"), -1); }),
              HasSubstr("starting afresh (--resume never)"));
}

TEST_F(RunFolder, APathResumesFromExactlyThat) {
  save(3);
  save(4);
  logged([&] {
    EXPECT_EQ(resumed_step(checkpoint_path(run_, 3).string()), 3);
    EXPECT_EQ(resumed_step(run_.string()), 4);
  });
  truncate(3);
  EXPECT_THAT([&] { resumed_step(checkpoint_path(run_, 3).string()); },
              ThrowsMessage<Error>(HasSubstr("truncated or damaged")));
}

TEST_F(RunFolder, AMistypedPathOrWordIsAnInputError) {
  save(3);
  for (const std::string& resume : {run_.string() + "/checkpoints/step-00000030.h5", std::string("nevr")}) {
    try {
      resumed_step(resume);
      FAIL() << resume;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      EXPECT_THAT(error.what(), HasSubstr("--resume: there is no file '" + resume));
    }
  }
  EXPECT_THAT([&] { resumed_step("nevr"); }, ThrowsMessage<Error>(HasSubstr("did you mean 'never'?")));
  EXPECT_THAT([&] { resumed_step(folder_.path().string()); },
              ThrowsMessage<Error>(HasSubstr("there is no checkpoint in")));
}

TEST_F(RunFolder, DamagedCheckpointsArePassedOverAloud) {
  for (const std::int64_t step : {1, 2, 3}) save(step);
  truncate(3);
  fs::copy_file(checkpoint_path(run_, 1), checkpoint_path(run_, 2), fs::copy_options::overwrite_existing);
  EXPECT_THAT(logged([&] { EXPECT_EQ(resumed_step("auto"), 1); }),
              AllOf(HasSubstr("passing over a checkpoint: "),
                    HasSubstr("step-00000003.h5' is an HDF5 file but truncated"),
                    HasSubstr("step-00000002.h5' is the checkpoint of step 1")));
  truncate(1);
  testing::internal::CaptureStderr();
  EXPECT_THAT([&] { resumed_step("auto"); }, ThrowsMessage<Error>(HasSubstr("none of the 3 checkpoints in")));
  testing::internal::GetCapturedStderr();
}

TEST_F(RunFolder, IsPreparedByMovingLaterStepsAsideAndRemovingWhatWasNeverCompleted) {
  for (const std::int64_t step : {5, 6, 7}) save(step);
  put("step-00000008.h5.partial-01234567");
  put("mine.h5");
  logged([&] { prepare_run_folder(run_, 5, log_); });
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(5));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/set-aside-1/step-00000007.h5"));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints/step-00000008.h5.partial-01234567"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/mine.h5"));
  save(6);
  EXPECT_THAT(logged([&] { prepare_run_folder(run_, 5, log_); }),
              HasSubstr("moved 1 checkpoint of later steps"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/set-aside-2/step-00000006.h5"));
  logged([&] { prepare_run_folder(run_, 0, log_); });
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/set-aside-3/step-00000005.h5"));
  EXPECT_THAT(logged([&] { prepare_run_folder(run_, 0, log_); }), IsEmpty());
}

TEST_F(RunFolder, KeepsTheLastByNumber) {
  for (const std::int64_t step : {8, 9, 10, 99999}) save(step);
  put("mine.h5");
  logged([&] { keep_last(run_, 10, 0, log_); });
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(8, 9, 10, 99999));
  logged([&] { keep_last(run_, 10, 2, log_); });
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(9, 10, 99999));
  logged([&] { keep_last(run_, 10, 1, log_); });
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(10, 99999));
  logged([&] { keep_last(run_, 10, 1, log_); });
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(10, 99999));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints/mine.h5"));
}

TEST_F(RunFolder, KeepsEarlierCheckpointsWhileTheNewestIsDamaged) {
  for (const std::int64_t step : {1, 2, 3}) save(step);
  truncate(3);
  EXPECT_THAT(logged([&] { keep_last(run_, 3, 1, log_); }), HasSubstr("keeping the earlier checkpoints"));
  EXPECT_THAT(checkpointed_steps(run_), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace alpa
