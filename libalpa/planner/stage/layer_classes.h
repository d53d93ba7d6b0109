#pragma once
#include <map>
#include <vector>

#include "libalpa/graph/graph.h"

namespace alpa {

/// Which layers are the same: equal nodes (operators, settings, shapes) wired equally inside, whatever comes
/// in from outside. Equal layers are planned once (folding).
struct LayerClasses {
  std::vector<int> of_layer;  ///< layer -> class; classes are numbered in order of appearance
  std::vector<std::vector<NodeIndex>> layer_nodes;  ///< layer -> its nodes, in the graph's order
  Indexed<NodeIndex, int> place_in_layer;           ///< index in layer_nodes of its layer
};

LayerClasses classify_layers(const Graph&);

/// Each layer by itself.
LayerClasses layers_apart(const Graph&);

}  // namespace alpa
