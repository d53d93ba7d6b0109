#pragma once
#include <memory>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/kernels/kernel.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// Runs a whole graph on one device, node after node, each value in memory of its own: the simplest way that
/// a graph means something, which every plan must agree with.
///
///     Interpreter step(device, graph);
///     step.set(state.value, initial); step.set(tokens, ids); ...
///     step.run_micro_batch(true, point);  // Phase::forward and Phase::backward
///     step.run_update(point);             // Phase::update; states then hold their next values
class Interpreter {
 public:
  /// `device` and `graph` must outlive it.
  Interpreter(Device& device, const Graph& graph);

  void set(ValueIndex value, const Values& elements);
  Values get(ValueIndex value) const;

  /// `first` micro-batch of a step: sums over micro-batches are overwritten instead of added to.
  void run_micro_batch(bool first, const RunPoint&);
  void run_forward(const RunPoint&);
  void run_update(const RunPoint&);

  /// One node alone.
  void run_node(NodeIndex, bool accumulate, const RunPoint&);

  void synchronize() { stream_->synchronize(); }  ///< waits until what was run is done

 private:
  const Graph& graph_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  Indexed<ValueIndex, void*> data_;  ///< results that overwrite operands share theirs
  Indexed<NodeIndex, std::unique_ptr<Kernel>> kernels_;
  std::unique_ptr<DeviceMemory> workspace_;
};

}  // namespace alpa
