#pragma once
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/pipeline_table.h"
#include "libalpa/planner/search/span_table.h"
#include "libalpa/planner/stage_places.h"

namespace alpa {

/// What a stage takes at least.
struct StageFloor {
  double forward_s = 0;      ///< of a micro-batch, until the next stage has all that it gets
  double turn_s = 0;         ///< with the backward, until the stage before has all that it gets
  double inputs_turn_s = 0;  ///< likewise, where gradients of weights are left for later
  double backward_s = 0;     ///< of a micro-batch
  double micro_batch_s = 0;  ///< all of a micro-batch
  double step_s = 0;         ///< all micro-batches and the update
  double update_s = 0;       ///< the update alone
  bool sends_last = true;    ///< a forward ends with what the next stage gets
  bool operator==(const StageFloor&) const = default;
};

/// What bounds on pipelines go by, of their schedule.
struct PipelineForm {
  int micro_batches = 1;
  /// [stages left, the stage itself among them] The most micro-batches that a stage holds at once.
  std::vector<int> in_flight;
  /// A micro-batch's backward is done before the next one's. Where it is not, earlier stages need not wait
  /// for gradients of weights.
  bool whole_backwards = true;
};
/// Of a schedule of stages with meshes of their own.
PipelineForm form_of(const std::string& schedule, int micro_batches, int most_stages);

/// Less than that no step of such a pipeline takes, however its stages overlap. A stage gets its first
/// micro-batch after the forwards before it, and then does all of them in turn. When it has as many in flight
/// as it may hold, it waits until the first of them has been through all stages behind it and back; so it
/// does with the last one in the end. Then it has its update, while earlier stages finish their backwards.
double least_pipeline_s(const std::vector<StageFloor>&, const PipelineForm&);

/// The ways that stages may be run, each with a floor in place of what it takes.
class FloorChoices {
 public:
  /// As of StageChoices.
  FloorChoices(int layers, const StagePlaces& places, std::vector<int> sizes)
      : layers_(layers), places_(places), sizes_(std::move(sizes)), ways_(layers, sizes_.size()) {}

  struct Way {
    int most_in_flight = 0;
    StageFloor floor;
  };
  void offer(int first_layer, int end_layer, int size, const StageSides&, Way);
  const std::vector<Way>& ways(int first_layer, int end_layer, std::size_t size,
                               const StageSides& sides) const {
    return ways_.at(first_layer, end_layer, size)[sides];
  }

  int layers() const { return layers_; }
  int devices() const { return places_.devices(); }
  const StagePlaces& places() const { return places_; }
  const std::vector<int>& sizes() const { return sizes_; }

 private:
  int layers_;
  StagePlaces places_;
  std::vector<int> sizes_;
  SpanTable<BySides<std::vector<Way>>> ways_;
};

/// A pipeline that cannot be ruled out.
struct LeastPipeline {
  struct Stage {
    int end_layer = 0, devices = 0;
    StageFloor floor = {};
  };
  std::vector<Stage> stages;
  double seconds = 0;  ///< a bound on all with as many stages
};
inline double step_s(const LeastPipeline::Stage& stage) { return stage.floor.step_s; }

/// For each number of stages the one that is bounded by the least, of those that may take less than
/// `below_s`. Numbers of stages for which there is none are missing. Nothing: it was stopped.
std::optional<std::vector<LeastPipeline>> least_pipelines(const FloorChoices&, const PipelineForm&,
                                                          int least_stages, double below_s = infinity,
                                                          const FillOptions& = {});

}  // namespace alpa
