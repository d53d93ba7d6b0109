#include "apps/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

Environment environment_of(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, KnowsTheTasksOfAStepAndOfAJob) {
  EXPECT_EQ(environment_of({}).tasks, 0);
  EXPECT_EQ(environment_of({{"SLURM_NTASKS", "8"}}).tasks, 8);
  EXPECT_EQ(environment_of({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}}).tasks, 4);
}

TEST(Environment, BelievesTheLauncherThatMpiKnows) {
  const Environment below_mpiexec =
      environment_of({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "3"}});
  EXPECT_EQ(below_mpiexec.tasks, 1);
  EXPECT_EQ(below_mpiexec.process, 0);
  EXPECT_EQ(environment_of({{"SLURM_PROCID", "3"}}).process, 3);
}

TEST(Environment, KnowsTheJobAndItsEnd) {
  const Environment environment =
      environment_of({{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_END_TIME", "1700000000"}});
  EXPECT_EQ(environment.job_id, "4711");
  EXPECT_EQ(environment.job_end_time_s, 1.7e9);
}

TEST(Environment, KnowsTheNodeBySlurmsNameElseTheHosts) {
  EXPECT_EQ(environment_of({{"SLURMD_NODENAME", "c3"}}).node_name, "c3");
  EXPECT_NE(environment_of({}).node_name, "");
}

TEST(Environment, TakesNonsenseForNothing) {
  const Environment environment =
      environment_of({{"SLURM_NTASKS", "many"}, {"SLURM_CPUS_PER_TASK", "-3"}, {"OMP_NUM_THREADS", ""}});
  EXPECT_EQ(environment.tasks, 0);
  EXPECT_EQ(environment.cpus_per_task, 0);
  EXPECT_EQ(environment.omp_threads, 0);
}

TEST(ThreadsPerRank, AreAskedForElseSlurmsElseOpenMPsElseAShareOfTheCores) {
  const Environment both = environment_of({{"SLURM_CPUS_PER_TASK", "6"}, {"OMP_NUM_THREADS", "3,2"}});
  EXPECT_EQ(threads_per_rank(2, both, 16, 4), 2);
  EXPECT_EQ(threads_per_rank(0, both, 16, 4), 6);
  EXPECT_EQ(threads_per_rank(0, environment_of({{"OMP_NUM_THREADS", "3,2"}}), 16, 4), 3);
  EXPECT_EQ(threads_per_rank(0, {}, 16, 1), 16);
  EXPECT_EQ(threads_per_rank(0, {}, 16, 4), 4);
  EXPECT_EQ(threads_per_rank(0, {}, 16, 32), 1);
}

TEST(ThreadsPerRank, AreRefusedWhereOpenMPWouldCrash) {
  EXPECT_EQ(threads_per_rank(1024, {}, 16, 1), 1024);
  EXPECT_THROW(threads_per_rank(1025, {}, 16, 1), Error);
  EXPECT_THROW(threads_per_rank(0, environment_of({{"OMP_NUM_THREADS", "1000000"}}), 16, 1), Error);
}

}  // namespace
}  // namespace alpa
