#include "apps/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"

namespace alpa {
namespace {

/// The leading number of a variable ("4" of OMP_NUM_THREADS=4,2); `otherwise` where there is none.
double leading_number(const char* text, double default_value) {
  if (!text) return default_value;
  const std::string_view view(text);
  double value = 0;
  const auto [end, code] = std::from_chars(view.data(), view.data() + view.size(), value);
  return code == std::errc{} && value >= 0 && value <= 1e15 ? value : default_value;
}

}  // namespace

Environment read_environment(const std::function<const char*(const char*)>& variable) {
  const auto number = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const double value = leading_number(variable(name), -1); value >= 0) return value;
    return 0.0;
  };
  Environment environment;
  // A launcher that MPI knows (PMI) counts best: below mpiexec in a Slurm job the SLURM_ variables describe
  // hydra's proxies, and mpiexec -n 1 in a job of four tasks is meant so.
  environment.tasks =
      static_cast<int>(std::min(number({"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}), 1e9));
  environment.process = static_cast<int>(std::min(number({"PMI_RANK", "SLURM_PROCID"}), 1e9));
  environment.cpus_per_task = static_cast<int>(std::min(number({"SLURM_CPUS_PER_TASK"}), 1e6));
  environment.omp_threads = static_cast<int>(std::min(number({"OMP_NUM_THREADS"}), 1e6));
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const char* const node = variable("SLURMD_NODENAME");  // several of Slurm's nodes may share one host
  environment.node_name = node ? node : host;
  if (const char* job = variable("SLURM_JOB_ID")) environment.job_id = job;
  environment.job_end_time_s = number({"SLURM_JOB_END_TIME"});
  return environment;
}

Environment read_environment() {
  return read_environment([](const char* name) -> const char* { return std::getenv(name); });
}

int threads_per_rank(int asked, const Environment& environment, int cores_of_node, int ranks_on_node) {
  for (const int threads : {asked, environment.cpus_per_task, environment.omp_threads})
    if (threads > kMostThreads)
      throw Error(ErrorKind::usage,
                  fmt::format("{} threads for each rank, expected at most {}", threads, kMostThreads),
                  "--threads, or OMP_NUM_THREADS and SLURM_CPUS_PER_TASK of the job");
    else if (threads > 0)
      return threads;
  return std::max(1, cores_of_node / std::max(1, ranks_on_node));
}

}  // namespace alpa
