#include "libalpa/runtime/job_machines.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

/// Ranks on each node in order, "2 + 2"; a node that ranks come back to is named again.
std::string spread_text(const std::vector<int>& node_of_rank) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < node_of_rank.size(); begin = end) {
    while (end < node_of_rank.size() && node_of_rank[end] == node_of_rank[begin]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : " + ", end - begin);
  }
  return text;
}

/// How the ranks lie on other nodes than planned; "": they do not.
std::string other_nodes(const Plan& plan, const std::vector<int>& node_of_rank) {
  const int per_node = plan.cluster.devices_per_node;
  std::vector<int> planned;
  for (int rank = 0; rank < plan.ranks(); ++rank) planned.push_back(rank / per_node);
  if (planned == node_of_rank) return "";
  return fmt::format(
      "the plan has its {} ranks on nodes of {} devices ({}), this job has them on its nodes as {}",
      planned.size(), per_node, spread_text(planned), spread_text(node_of_rank));
}

}  // namespace

void check_rank_count(int planned, int ranks, int servers) {
  if (ranks == planned) return;
  const std::string serving = servers > 0 ? fmt::format(", {} of which serve", servers) : "";
  throw Error(
      ErrorKind::allocation,
      fmt::format("the plan is for {}{}, this job has {}", count_text(planned, "rank"), serving, ranks),
      fmt::format("srun --ntasks {} (or mpiexec -n {}), or plan again with --devices {}", planned, planned,
                  std::max(ranks - servers, 1)));
}

JobMachines gather_machines(int node, const Device& device, Device& host, Communicator& control) {
  JobMachines job{std::vector<int>(static_cast<std::size_t>(control.size())), device.description(),
                  device.kind(), control.rank()};
  const std::unique_ptr<Stream> stream = host.make_stream();
  control.all_gather(*stream, &node, job.node_of_rank.data(), sizeof node);
  stream->synchronize();
  return job;
}

std::string check_machines(const Plan& plan, const JobMachines& job) {
  check_rank_count(plan.ranks(), static_cast<int>(job.node_of_rank.size()), plan.cluster.server_devices());
  if (plan.cluster.servers > 0 && job.kind == DeviceKind::cuda)
    throw Error(ErrorKind::allocation,
                "the plan has servers, which help CPU ranks alone: GPUs add up by NCCL, which knows no ranks "
                "that have nothing to add",
                "--device cpu, or a plan without --servers");
  const std::string others = other_nodes(plan, job.node_of_rank);
  if (job.kind == DeviceKind::emulated) return others;
  if (!others.empty())
    throw Error(
        ErrorKind::allocation, others,
        fmt::format(
            "srun --ntasks-per-node {} --distribution=block, or plan again with a profile of these nodes",
            std::min(plan.cluster.devices_per_node, plan.devices())));
  const std::string planned = cluster_under(plan.cluster, {DeviceIndex(job.rank), {}}).device,
                    here = kind_of_device(job.device);
  const bool is_measured = plan.is_measured();
  if (!is_measured && names_same_device(planned, here)) return "";
  const DeviceMatch match = match_devices(planned, here);
  if (is_measured && match == DeviceMatch::same) return "";
  if (is_measured && match == DeviceMatch::other)
    throw Error(
        ErrorKind::allocation,
        fmt::format("the plan was made from measurements on {}, this job computes on {}", planned, here),
        "nodes of that kind (srun --constraint), another --device, or a profile and a plan of these");
  return fmt::format("the plan's predictions are for another machine: {} of {}, this job computes on {}",
                     plan.cluster.name, planned, here);
}

}  // namespace alpa
