#pragma once
#include <span>
#include <vector>

#include "libalpa/graph/op.h"

namespace alpa {

/// Which part of a vertex function is done in its rounds, and how (Cavs, section 3.5). Each can be turned
/// off, to compare; what rounds cannot do for a row stays outside.
struct RoundsForm {
  bool eager = true;  ///< what waits for no child is worked out for all rows at once, before the rounds
  /// What no parent waits for, and gradients of weights, are worked out for all rows at once, after the
  /// rounds. Without it, gradients of the weights that rounds have are made even where nothing wants them.
  bool lazy = true;
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

/// Of a value of a body: it has no rows [b v w], but is what is added up over them.
bool is_sum_over_rows(const TensorType&);

/// [value] Types, whole or of local tiles as the operands are. Throws Error(input) where a step cannot take
/// its operands.
std::vector<TensorType> value_types(const VertexBody&, std::span<const TensorType> operands);

}  // namespace alpa
