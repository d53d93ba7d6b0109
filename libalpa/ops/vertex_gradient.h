#pragma once
#include <span>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/graph/vertex_body.h"

namespace alpa {

/// A vertex function with its backward, differentiated as any other graph: what a vertex gathers is an
/// operand, and what it publishes has, beside the gradients of results, the one that its parents give back
/// (`received`).
struct VertexGradient {
  Graph graph;
  int forward_nodes = 0;                ///< the first ones; the others are the backward
  std::vector<ValueIndex> values;       ///< [value of the body] in the graph
  std::vector<ValueIndex> of_results;   ///< [result] inputs: their gradients; -1: none
  std::vector<ValueIndex> of_operands;  ///< [operand] their gradients; -1: none
  struct Return {
    ValueIndex value;
    int state = 0;
    bool to_each = false;
  };
  std::vector<Return> returns;
};

/// `with_gradient` says which results have one.
VertexGradient gradient_of(const VertexBody&, std::span<const TensorType> operands,
                           const std::vector<bool>& with_gradient);

/// The values of the body, steps of it, that its backward needs where all results have gradients.
std::vector<int> needed_in_backward(const VertexBody&, std::span<const TensorType> operands);

}  // namespace alpa
