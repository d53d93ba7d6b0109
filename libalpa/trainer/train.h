#pragma once
#include "libalpa/base/log.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/h5/provenance.h"
#include "libalpa/plan/plan.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/trainer/train_settings.h"

namespace alpa {

/// Trains what a plan says, collective over all ranks. Returns 0 when all steps are done, 75 when it stopped
/// early with a valid checkpoint. Throws Error(allocation) where plan and machines differ (check_machines(),
/// f16 on CPUs), Error(non_finite) where the loss is, Error(input) for data and checkpoints.
int train(const Plan&, const Graph&, const TrainingOptions&, const TrainSettings&, const TrainRanks&,
          const StopRequest&, const Provenance&, Log&);

}  // namespace alpa
