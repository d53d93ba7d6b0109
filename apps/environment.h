#pragma once
#include <functional>
#include <string>

namespace alpa {

/// What the launcher passes to a process through its environment. Nothing else of the suite reads the
/// environment.
struct Environment {
  int tasks = 0;              ///< processes of this step of the job; 0: not known
  int process = 0;            ///< which of them this one is, by the launcher's count
  int cpus_per_task = 0;      ///< SLURM_CPUS_PER_TASK; 0: not set
  int omp_threads = 0;        ///< OMP_NUM_THREADS; 0: not set
  std::string node_name;      ///< SLURMD_NODENAME, else the host's name
  std::string job_id;         ///< of Slurm; "" outside a job
  double job_end_time_s = 0;  ///< SLURM_JOB_END_TIME, seconds since 1970; 0: not set
};

/// `variable` gives the value of a variable, or nullptr.
Environment read_environment(const std::function<const char*(const char*)>& variable);
Environment read_environment();

/// Threads of one rank: `asked` (0: not asked), else SLURM_CPUS_PER_TASK, else OMP_NUM_THREADS, else its
/// share of the cores that the ranks of its node may run on. Throws Error(usage) for more than 1024.
int threads_per_rank(int asked, const Environment&, int cores_of_node, int ranks_on_node);

}  // namespace alpa
