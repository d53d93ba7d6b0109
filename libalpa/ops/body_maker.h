#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/graph/vertex_body.h"

namespace alpa {

/// Nodes around rounds, each in an order in which they can run.
struct RoundsParts {
  std::vector<NodeIndex> before, in, after;
};

bool uses_any(const Node&, const std::set<ValueIndex>&);

/// Moves nodes into the rounds that these can do for a row of that structure: of those before, where asked
/// for, what else only nodes in the rounds use; of those after, what uses no other node after them. Sums over
/// rows move too, but for those that a node in the rounds would use.
void move_into_rounds(const Graph&, ValueIndex structure, bool from_before, bool from_after, RoundsParts&);

/// Nodes of a part of a graph that move into a vertex body, and what that needs of the rest.
class BodyMaker {
 public:
  /// Keeps a reference. `rows` and `structure` are the first two operands.
  BodyMaker(const Graph&, ValueIndex rows, ValueIndex structure);

  /// `nodes` in an order in which they can run, each with one result. Values made elsewhere are rows where
  /// they have them, else weights.
  void take(const std::vector<NodeIndex>& nodes);
  /// A value from elsewhere that is no operand of the nodes.
  void note(ValueIndex);

  /// Makes it a result, if a step makes it.
  void give(ValueIndex);

  int number(ValueIndex) const;  ///< of a value in the body
  VertexBody body() const;       ///< its operands, steps and results
  std::vector<ValueIndex> operands() const;

  /// Adds the node of that operator: its operands are what the map makes of them, or the same; the first of
  /// its results are those that were given, and go into the map.
  void add_node(GraphBuilder&, const char* op, const VertexBody&, std::int64_t group, const RoundsForm&,
                const std::string& name, std::map<ValueIndex, ValueIndex>&) const;

 private:
  bool is_row(ValueIndex) const;

  const Graph& graph_;
  std::vector<ValueIndex> given_;
  std::vector<ValueIndex> row_operands_, weights_;
  std::vector<NodeIndex> nodes_;
  std::set<ValueIndex> made_;
};

/// Adds a node of another graph, or of what this one was. Operands are what the map makes of them, or the
/// same; its results go into the map.
void add_again(GraphBuilder&, const Node&, std::map<ValueIndex, ValueIndex>&);

}  // namespace alpa
