#pragma once
#include "libalpa/model/frame.h"

namespace alpa {

/// Adds what the samples have to the graph, and to the values that the model's layers see. Returns the
/// structure of graphs (ops/vertex.h), which vertex functions take by themselves; -1: samples are no graphs,
/// or its numbers fail.
ValueIndex add_inputs(GraphBuilder&, const ModelDefinition&, Frame&);

}  // namespace alpa
