#include "libalpa/device/host_machine.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "libalpa/base/error.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

/// The files in which a system reports its memory.
class HostMemory : public testing::Test {
 protected:
  HostMemory() { write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:  1000 kB\n"); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  std::int64_t available() const { return available_host_bytes(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST_F(HostMemory, IsWhatTheKernelCallsAvailable) { EXPECT_EQ(available(), 1000 * 1024); }

TEST_F(HostMemory, IsWhatTheGroupOfAJobLeaves) {
  write("proc/self/cgroup", "0::/slurm/job_1/step_0\n");
  write("sys/fs/cgroup/slurm/job_1/step_0/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/job_1/step_0/memory.current", "100\n");
  write("sys/fs/cgroup/slurm/job_1/memory.max", "5000\n");
  write("sys/fs/cgroup/slurm/job_1/memory.current", "3000\n");
  EXPECT_EQ(available(), 2000);
  write("sys/fs/cgroup/slurm/job_1/memory.stat", "anon 2500\ninactive_file 500\n");
  EXPECT_EQ(available(), 2500);
}

TEST_F(HostMemory, IsWhatAGroupOfTheFirstVersionLeaves) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 70\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(available(), 2070);
}

TEST_F(HostMemory, IsNothingWhereAGroupHasMoreThanItMay) {
  write("proc/self/cgroup", "0::/\n");  // a container sees its own group as the root
  write("sys/fs/cgroup/memory.max", "5000\n");
  write("sys/fs/cgroup/memory.current", "6000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(HostMemory, ThatTheSystemDoesNotReportIsAnError) {
  write("proc/meminfo", "MemTotal:  2000 kB\n");
  EXPECT_THROW(available(), Error);
}

TEST(ProcessBytes, GrowWithWhatTheProcessTouches) {
  constexpr std::int64_t bytes = 64 << 20;
  const std::int64_t before = process_bytes();
  const std::vector<char> touched(bytes, 1);
  EXPECT_GT(before, 0);
  EXPECT_GT(process_bytes() - before, bytes * 9 / 10) << static_cast<int>(touched.back());
}

TEST(AvailableHostBytes, OfThisMachineAreSome) { EXPECT_GT(available_host_bytes(), 0); }

}  // namespace
}  // namespace alpa
