#pragma once
#include <span>
#include <vector>

#include "libalpa/graph/op.h"

namespace alpa {

/// What of a vertex function its rounds have, and how they work on it. Each part can be turned off, to
/// compare.
struct RoundsForm {
  bool eager = true;  ///< what waits for no child is worked out for all rows at once, before the rounds
  bool lazy = true;   ///< so are, after them, what no parent waits for, and gradients of weights
  bool fused = true;  ///< what works element by element takes one pass over a row, else one for each function
};
RoundsForm rounds_form_of(const Attributes&);
void set_rounds_form(Attributes&, const RoundsForm&);

/// What the operators `rounds` and `rounds_grad` do for the vertices of each round (Cavs, ATC'18, section 3):
/// single-assignment steps on rows, of which every vertex has one. It travels as text in the attributes of
/// the node, so that it is in the graph's fingerprint and in the signature that a profile knows it by.
///
/// Values are numbered: the operands of the node, then one for each step.
struct VertexBody {
  struct Step {
    const OpDef* op = nullptr;
    Attributes attributes;
    std::vector<int> of;  ///< values
  };

  /// Rows that are added to the gradient of what the children published as `state`: as many side by side as a
  /// vertex may have children, or one that goes to each of them.
  struct Return {
    int value = 0, state = 0;
    bool to_each = false;
  };

  int operands = 0;
  std::vector<Step> steps;
  std::vector<int> results;     ///< values that the node gives: rows of all vertices, or sums over them
  std::vector<int> states;      ///< [state] the value that a vertex publishes to its parents
  std::vector<Return> returns;  ///< `rounds_grad` alone

  int values() const { return operands + static_cast<int>(steps.size()); }
  int step_of(int value) const { return value - operands; }  ///< negative: an operand
};

/// Reads the attributes body, results, states and returns of a node with so many operands.
VertexBody body_of(const Attributes&, int operands, OpCatalog);

/// Sets these attributes.
void set_body(Attributes&, const VertexBody&);

/// [value] Types, whole or of local tiles as the operands are. Throws Error(input) where a step cannot take
/// its operands.
std::vector<TensorType> value_types(const VertexBody&, std::span<const TensorType> operands);

}  // namespace alpa
