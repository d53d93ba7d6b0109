#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/step_walk.h"
#include "libalpa/runtime/lane_threads.h"
#include "libalpa/runtime/prepared_step.h"
#include "libalpa/runtime/race_watch.h"

namespace alpa {

/// A mesh's program made ready for one rank: instructions, the stream that each runs on, and the events that
/// it waits for. On CPU and emulated devices LaneThreads run what overlaps. On checked devices each step runs
/// in another of the orders that the dependences allow, drawn by the seed, under a RaceWatch.
class PreparedProgram {
 public:
  /// Keeps references to program and device. `streams` are those of the mesh's lanes; their owner
  /// outlives this. All ranks give the same seed. `costs` are what an emulated device computes by, else null.
  PreparedProgram(const Graph&, const Program&, MeshIndex mesh, const std::vector<int>& coordinate,
                  DeviceIndex rank, Device&, std::vector<Stream*> streams, std::uint64_t seed,
                  const CostModel* costs);
  PreparedProgram(const PreparedProgram&) = delete;

  /// Queues what of a step the context's pass is of; later work of the first lane starts when all of it is
  /// done, but for collectives of the update where steps may overlap each other. Where `rows` is given, waits
  /// after each instruction and adds a row; and nothing goes on in the next step.
  void run(StepContext, std::vector<TimelineRow>* rows);

  /// Queues every kernel once, on the first lane, and no message.
  void run_kernels(StepContext);

 private:
  /// That an instruction is done, for its last runs.
  struct Mark {
    std::vector<std::unique_ptr<Event>> events;  ///< [micro-batch % size]
    std::vector<RaceWatch::Clock> clocks;        ///< [micro-batch], on checked devices
  };
  struct Use {
    BufferAddress buffer;
    bool writes;
  };

  PreparedStep& step_of(int segment, int instruction) { return steps_[segment][instruction]; }
  void mark(const std::vector<Dependence>&, int waiting_segment);
  std::vector<int> beside(const Instance&) const;
  void run_one(StepContext&, int run, int instruction, std::vector<TimelineRow>* rows);

  const Program& program_;
  const MeshProgram& mesh_;
  Device& device_;
  std::vector<Stream*> streams_;              ///< [lane]
  std::vector<std::unique_ptr<Event>> ends_;  ///< [lane] of a step
  RunTable runs_;
  PreparedSteps steps_;
  std::vector<std::vector<std::unique_ptr<Mark>>> marks_;  ///< [segment][instruction], null: nobody waits
  // Of checked devices.
  std::vector<std::vector<std::vector<Use>>> uses_;  ///< [segment][instruction]
  std::vector<Dependences> waits_;                   ///< [mesh]
  std::uint64_t seed_;                               ///< of the next step's order
  std::optional<RaceWatch> watch_;
  std::optional<LaneThreads> lane_threads_;
};

}  // namespace alpa
