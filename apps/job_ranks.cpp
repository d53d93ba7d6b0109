#include "apps/job_ranks.h"

#include "libalpa/base/options.h"
#include "libalpa/comm/peer_watch.h"

namespace alpa {
namespace {

std::shared_ptr<const PeerWatch> watch_at_files(const ParallelRun& rank, double timeout_s) {
  PeerWatch watch = *rank.session.peer_watch();
  watch.limits = hang_limits(timeout_s);
  watch.option = "--file-timeout";
  watch.is_asked_to_end = [&stop = rank.stop] { return stop.is_urgent(); };
  watch.end_grace_s = 15;  // of the 30 that Slurm gives by default between SIGTERM and SIGKILL
  return std::make_shared<const PeerWatch>(std::move(watch));
}

}  // namespace

void describe_file_timeout(double& seconds, OptionsVisitor& visit) {
  visit.field(
      "file_timeout", seconds,
      "as --hang-timeout, while ranks save, load or verify a checkpoint: another rank has not moved on by 64 "
      "MiB for that many seconds, however long the whole takes; after SIGTERM for 15",
      at_least(0));
}

void add_trained_source(Command& command, TrainedSource& source) {
  command.option("--checkpoint", source.checkpoint, "checkpoint of the model; this or --run-dir")
      .option("--run-dir", source.run_dir, "folder of a run, of which the newest good checkpoint is taken")
      .reads([&source] {
        return source.run_dir.empty() ? std::vector<std::filesystem::path>{}
                                      : std::vector{source.run_dir / "checkpoints"};
      });
}

JobRanks::JobRanks(const DeviceSettings& settings, const ParallelRun& rank, const Cluster* emulated,
                   double file_timeout_s)
    : own_(make_rank_device(settings, rank.session, rank.environment, emulated)),
      ranks_on_node_(rank.session.ranks_on_node()),
      host_(make_cpu_device(own_.threads)),
      control_(rank.session.make_communicator(*host_)),
      files_(rank.session.make_communicator(*host_, watch_at_files(rank, file_timeout_s))) {}

TrainRanks JobRanks::ranks(const CostModel* costs) const {
  return {*own_.device, *own_.world, *host_, *control_, *files_, costs, ranks_on_node_};
}

}  // namespace alpa
