#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "libalpa/cluster/mesh.h"
#include "libalpa/graph/graph.h"
#include "libalpa/semantics/recompute_form.h"

namespace alpa {

/// What a mesh axis may be used for. Baselines and pins are the free search with a use given to each axis.
enum class AxisRole {
  free,
  data,      ///< splits the sample wherever there is one
  tensor,    ///< splits neither sample nor sequence
  sequence,  ///< splits the sequence wherever there is one; what needs all of it gathers it
  ring,      ///< likewise, but attention passes keys and values around (context parallelism)
  expert,    ///< splits experts wherever there are some, else the sample (GShard, ICLR'21)
  /// As data, but what makes nothing but the gradient of a weight may do so for all samples on every device,
  /// of operands that are gathered, in place of a term of a sum ("sufficient factors": Poseidon, ATC'17).
  factors,
  rows,  ///< likewise, but of rows of a table alone (Parallax, EuroSys'19)
};

/// How much of the training state is sharded over the data axes (ZeRO, SC'20); `free` leaves it to the
/// search.
enum class StateSharding { free, none, optimizer, gradients, parameters };

/// Whether layers keep what their backward takes of their forward (nullopt), or compute it again.
using LayerForm = std::optional<RecomputeForm>;

/// Whether what a stage gets from its neighbours comes from other nodes: from earlier stages, and from later
/// ones.
struct StageSides {
  bool before_is_apart = false, after_is_apart = false;
  auto operator<=>(const StageSides&) const = default;
};

/// A range of layers on a mesh, and how it is to be run.
struct StageRequest {
  int first_layer = 0, end_layer = 0;
  MeshShape mesh;
  DeviceIndex first_device{0};
  int micro_batches = 1;
  int in_flight = 1;                                   ///< micro-batches whose activations are held at once
  int recomputed_layers = 0;                           ///< as of StagePlan
  RecomputeForm recompute_form = RecomputeForm::full;  ///< likewise
  std::vector<AxisRole> roles = {};                    ///< per axis; empty: all free
  StateSharding state_sharding = StateSharding::free;
  std::int64_t reserve_bytes = 0;  ///< of the memory limit, for what the stage problem does not count
  StageSides sides = {};
  int pipeline_in_flight = 1;  ///< in_flight of the stage of the pipeline that has most
  /// What a second of the update counts. Less than 1: other stages' updates take longer.
  double update_weight = 1;
  bool operator==(const StageRequest&) const = default;
};

/// Runs of a phase per step.
inline double runs_per_step(const StageRequest& request, Phase phase) {
  return phase == Phase::update ? 1 : request.micro_batches;
}

/// What a stage is solved for the least of.
inline double weighed_s(const StageRequest& request, double micro_batch_s, double update_s) {
  return request.micro_batches * micro_batch_s + request.update_weight * update_s;
}

}  // namespace alpa
