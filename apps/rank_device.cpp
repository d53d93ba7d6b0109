#include "apps/rank_device.h"

#include <fmt/core.h>

#include <cassert>
#include <cstdlib>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"
#include "libalpa/cluster/cluster.h"

namespace alpa {
namespace {

/// Where another rank hangs, the device's waits end this process as --hang-timeout says.
void limit_waits(Device& device, const MpiSession& session) {
  const PeerWatch* const watch = session.peer_watch();
  if (!watch || session.size() == 1) return;
  const std::string& who = watch->places[session.rank()];
  device.waits().limit(watch->limits, watch->report, [who](const Error& error) {
    end_process(Error(error.kind(), who + ": " + error.happened(), error.hint()));
  });
  device.waits().watch();
}

}  // namespace

void describe(DeviceSettings& s, OptionsVisitor& visit) {
  std::vector<Word<DeviceKind>> words{
      {"cpu", DeviceKind::cpu, "the cores of the rank's node"},
      {"cuda", DeviceKind::cuda, "a GPU per rank"},
      {"checked-cpu", DeviceKind::checked_cpu, "for tests: finds host access to device memory; slow"}};
  if (s.may_emulate)
    words.push_back(
        {"emulated", DeviceKind::emulated,
         "rehearsal of the plan: computation takes the time that the plan's cluster (or --profile) "
         "gives it and computes nothing; messages, data and metrics are real"});
  visit.field("device", s.device, "where ranks compute", words);
  visit.field("threads", s.threads,
              "threads of each rank; 0: SLURM_CPUS_PER_TASK, OMP_NUM_THREADS, or its share of the cores",
              between(0, kMostThreads));
  visit.field("cores", s.placement, "where a rank's threads run",
              std::vector<Word<ThreadPlacement>>{
                  {"own", ThreadPlacement::own_cores,
                   "on the rank's share of the cores that it and others of its node may run on, "
                   "where each thread of every rank has one"},
                  {"any", ThreadPlacement::anywhere, "wherever the system puts them"}});
}

RankDevice make_rank_device(const DeviceSettings& settings, const MpiSession& session,
                            const Environment& environment, const Cluster* emulated) {
  const DeviceKind kind = settings.device;
  RankDevice rank;
  rank.threads =
      threads_per_rank(settings.threads, environment, session.cores_of_node(), session.ranks_on_node());
  if (settings.placement == ThreadPlacement::own_cores && session.core_share().least >= rank.threads)
    keep_to(session.core_share().own);
  switch (kind) {
    case DeviceKind::cpu:
      rank.device = make_cpu_device(rank.threads);
      break;
    case DeviceKind::emulated:
      assert(emulated);
      rank.device = make_emulated_device(emulated->device, emulated->memory_bytes);
      break;
    case DeviceKind::checked_cpu:
      rank.device = make_checked_cpu_device(rank.threads);
      break;
    case DeviceKind::cuda: {
      // Messages under way hold hardware queues each, which CUDA makes 8 of unless the environment asks for
      // more before it starts.
      setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
      const int visible = visible_cuda_devices();  // one where the launcher gives each rank its own
      if (visible > 1 && visible < session.ranks_on_node())
        throw Error(ErrorKind::allocation,
                    fmt::format("{} ranks of this node share {} GPUs", session.ranks_on_node(), visible),
                    "as many ranks per node as it has GPUs");
      rank.device = make_cuda_device(visible > 1 ? session.rank_on_node() : 0);
      limit_waits(*rank.device, session);
      break;
    }
  }
  rank.world = session.make_communicator(*rank.device);
  if (kind != DeviceKind::cuda) return rank;
  // One rank needs no NCCL, which the machine may lack then.
  rank.world =
      session.size() == 1 ? make_self_communicator() : make_nccl_communicator(*rank.device, *rank.world);
  return rank;
}

}  // namespace alpa
