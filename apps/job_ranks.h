#pragma once
#include <memory>

#include "apps/app.h"
#include "apps/rank_device.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/runtime/train_ranks.h"

namespace alpa {

/// The option --file-timeout.
void describe_file_timeout(double& seconds, OptionsVisitor&);

/// The options --checkpoint and --run-dir.
void add_trained_source(Command&, TrainedSource&);

/// This rank of a job that trains or evaluates, with all that it reaches the others by.
class JobRanks {
 public:
  /// Collective over all ranks, see make_rank_device().
  JobRanks(const DeviceSettings&, const ParallelRun&, const Cluster* emulated, double file_timeout_s);

  TrainRanks ranks(const CostModel* costs = nullptr) const;

 private:
  RankDevice own_;
  int ranks_on_node_;
  std::unique_ptr<Device> host_;
  std::unique_ptr<Communicator> control_, files_;
};

}  // namespace alpa
