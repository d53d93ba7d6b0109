#pragma once
#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"

namespace alpa {

/// Extends a forward graph by its backward nodes and its update: reverse-mode differentiation, gradients
/// summed over micro-batches ([training] gradient_sum) and over devices (gradient_wire), the global gradient
/// norm, and the optimizer.
///
/// The loss is a sum; its gradient is seeded with the input loss_scale, so gradients are those of the mean
/// over the whole step whatever the number of micro-batches. A parameter used by several layers gets one
/// accumulator per layer; they are added in the update. Throws Error(input) where a parameter has no path to
/// the loss.
Graph training_graph(const Graph& forward, OpCatalog, const TrainingOptions&);

}  // namespace alpa
