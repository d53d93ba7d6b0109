#include "libalpa/graph/fusion.h"

#include <algorithm>
#include <set>

namespace alpa {
namespace {

class Fusion {
 public:
  Fusion(Graph graph, OpCatalog catalog)
      : graph_(std::move(graph)), uses_(graph_.values.size()), first_use_(graph_.values.size()) {
    for (const OpDef* op : catalog.all())
      if (!op->fuses.empty()) operators_.push_back(op);
    for (const NodeIndex n : graph_.nodes.indices())
      for (const ValueIndex operand : graph_.nodes[n].operands) {
        ++uses_[operand];
        if (first_use_[operand] < 0) first_use_[operand] = n;
      }
    wanted_.insert({graph_.loss, graph_.gradient_square_sum});
    for (const State& state : graph_.states) wanted_.insert(state.next);
    for (const Metric& metric : graph_.metrics) wanted_.insert(metric.values.begin(), metric.values.end());
  }

  Graph run() {
    for (const NodeIndex n : graph_.nodes.indices())
      while (fuse_into(n)) {
      }
    Indexed<NodeIndex, Node> nodes;
    for (const NodeIndex n : graph_.nodes.indices()) {
      if (gone_.contains(n)) continue;
      for (const ValueIndex result : graph_.nodes[n].results)
        graph_.values[result].producer = NodeIndex(nodes.size());
      nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
    return std::move(graph_);
  }

 private:
  const OpDef* operator_of(const Node& first, const Node& second) const {
    for (const OpDef* op : operators_) {
      const std::size_t space = op->fuses.find(' ');
      if (first.op->name == op->fuses.substr(0, space) && second.op->name == op->fuses.substr(space + 1))
        return op;
    }
    return nullptr;
  }

  /// Fuses `second` with the node of one of its operands, at the place of `second`, where it can be.
  bool fuse_into(NodeIndex at) {
    Node& second = graph_.nodes[at];
    for (const ValueIndex between : second.operands) {
      const NodeIndex maker = value_of(graph_, between).producer;
      if (maker < 0 || uses_[between] != 1 || wanted_.contains(between)) continue;
      const Node& first = graph_.nodes[maker];
      const OpDef* const op = operator_of(first, second);
      if (!op || first.results[0] != between || first.layer != second.layer || first.phase != second.phase)
        continue;
      if (first.attributes != Attributes() && second.attributes != Attributes()) continue;
      // What else it makes is then made later, which nothing may notice.
      if (std::any_of(first.results.begin() + 1, first.results.end(),
                      [&](ValueIndex result) { return uses_[result] > 0 && first_use_[result] < at; }))
        continue;
      Node fused = second;
      fused.op = op;
      if (second.attributes == Attributes()) fused.attributes = first.attributes;
      fused.operands = first.operands;
      for (const ValueIndex operand : second.operands)
        if (operand != between) fused.operands.push_back(operand);
      fused.results.insert(fused.results.end(), first.results.begin() + 1, first.results.end());
      second = std::move(fused);
      gone_.insert(maker);
      graph_.values[between].producer = NodeIndex();
      return true;
    }
    return false;
  }

  Graph graph_;
  std::vector<const OpDef*> operators_;
  Indexed<ValueIndex, int> uses_;
  Indexed<ValueIndex, NodeIndex> first_use_;
  std::set<ValueIndex> wanted_;  ///< by no node
  std::set<NodeIndex> gone_;
};

}  // namespace

Graph with_fused_operators(Graph graph, OpCatalog catalog) { return Fusion(std::move(graph), catalog).run(); }

}  // namespace alpa
