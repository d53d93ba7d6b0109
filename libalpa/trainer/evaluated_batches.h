#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"
#include "libalpa/runtime/executor.h"
#include "libalpa/trainer/batch_reader.h"
#include "libalpa/trainer/metrics.h"
#include "libalpa/trainer/read_ahead.h"

namespace alpa {

/// The metrics of a graph, all 0, to which those of steps are added.
std::vector<NamedNumber> no_metrics(const Graph&);
void add_metrics(const StepResult&, std::vector<NamedNumber>& to);
/// Of sums over so many targets and steps.
void make_means(const Graph&, double targets, double steps, std::vector<NamedNumber>& sums);

/// Runs the forward alone on held-out samples, whole batches in their order, and adds up what comes out. All
/// ranks call it alike.
class EvaluatedBatches {
 public:
  /// Keeps references. `program` of the executor evaluates.
  EvaluatedBatches(const Graph&, Executor&, std::size_t program, ReadAhead&, BatchReader&,
                   const TrainingOptions&);

  /// Batches that there are; what is left of the samples is less than one.
  std::int64_t all() const;
  std::int64_t done() const { return done_; }

  /// The next batch, after so many steps of training.
  void add(std::int64_t steps_done);

  double targets() const { return targets_; }  ///< of the batches that are done
  Evaluation mean() const;                     ///< over these

 private:
  const Graph& graph_;
  Executor& executor_;
  std::size_t program_;
  ReadAhead& samples_;
  BatchReader& reader_;
  std::int64_t batch_;
  std::int64_t done_ = 0;
  double targets_ = 0;
  Evaluation sums_;
  std::vector<std::int32_t> group_rows_;
};

}  // namespace alpa
