#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>

#include "libalpa/checkpoint/run_folder.h"
#include "tests/checkpoint/checkpoint_sample.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

constexpr std::int64_t rows = 700, columns = 500;

float salt_of(std::int64_t step) { return static_cast<float>(step % 64) / 64; }

/// Saves step after step until it is killed; says over `pipe` when it begins and after each save.
[[noreturn]] void save_for_ever(const std::filesystem::path& run_dir, std::int64_t step, int pipe) {
  Log log("writer", LogLevel::off);
  prepare_run_folder(run_dir, step, log);
  const char word = 1;
  while (write(pipe, &word, 1) == 1) {
    ++step;
    StatesInMemory::whole(salt_of(step), rows, columns).save(checkpoint_path(run_dir, step), step);
    keep_last(run_dir, step, 2, log);
  }
  _exit(1);
}

/// Runs a writer and kills it `delay_s` after it has made `saves`.
void kill_a_writer(const std::filesystem::path& run_dir, std::int64_t step, int saves, double delay_s) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t writer = fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) save_for_ever(run_dir, step, ends[1]);
  close(ends[1]);
  for (int i = 0; i <= saves; ++i) {
    char word = 0;
    EXPECT_EQ(read(ends[0], &word, 1), 1) << "the writer ended by itself";
  }
  const timespec delay{0, static_cast<long>(delay_s * 1e9)};
  nanosleep(&delay, nullptr);
  ASSERT_EQ(kill(writer, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  close(ends[0]);
}

/// How long one save takes here and now, at most half a second.
double save_s(const std::filesystem::path& folder) {
  const auto start = std::chrono::steady_clock::now();
  StatesInMemory::whole(0, rows, columns).save(folder / "measured.h5", 1);
  return std::min(0.5, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

TEST(KilledWriter, TheNewestPublishedCheckpointAlwaysVerifiesAndResumes) {
  const TemporaryFolder folder;
  Log log("test", LogLevel::off);
  std::mt19937 random(20240520);
  std::uniform_real_distribution<double> moment(0, 1.5 * save_s(folder.path()));
  std::int64_t step = 0;
  for (int round = 0; round < 50; ++round) {
    const int saves = round % 2;
    kill_a_writer(folder.path(), step, saves, moment(random));
    const std::vector<std::int64_t> published = checkpointed_steps(folder.path());
    if (published.empty()) continue;
    ASSERT_GE(published.back(), step + saves) << "a published checkpoint is gone";
    const FoundCheckpoint newest = *newest_checkpoint(folder.path(), log);
    ASSERT_EQ(newest.facts.step, published.back()) << "the newest does not verify";
    step = newest.facts.step;
    StatesInMemory read = StatesInMemory::whole(-1, rows, columns);
    load_checkpoint(newest.path, read.graph, read.tiles);
    ASSERT_EQ(read.storage, StatesInMemory::whole(salt_of(step), rows, columns).storage) << "round " << round;
  }
}

}  // namespace
}  // namespace alpa
