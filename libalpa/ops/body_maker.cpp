#include "libalpa/ops/body_maker.h"

#include <algorithm>

#include "libalpa/ops/vertex_program.h"
#include "libalpa/ops/vertex_states.h"

namespace alpa {
namespace {

std::vector<ValueIndex> mapped(std::vector<ValueIndex> values, const std::map<ValueIndex, ValueIndex>& map) {
  for (ValueIndex& value : values)
    if (const auto found = map.find(value); found != map.end()) value = found->second;
  return values;
}

bool uses_any(const Node& node, const std::set<ValueIndex>& values) {
  return std::ranges::any_of(node.operands, [&](ValueIndex of) { return values.contains(of); });
}

/// Nodes of `from` that may not move; the others go to `to`, in the order that they had.
template <class MayMove>
std::vector<NodeIndex> move_some(const std::vector<NodeIndex>& from, std::vector<NodeIndex>& to,
                                 MayMove&& may_move) {
  std::vector<NodeIndex> left;
  for (const NodeIndex n : from) (may_move(n) ? to : left).push_back(n);
  return left;
}

}  // namespace

void move_into_rounds(const Graph& graph, ValueIndex structure, bool from_before, bool from_after,
                      RoundsParts& parts) {
  const auto sums = [&](const Node& node) {
    return sums_up_rows(*node.op, {operand_types(graph, node), node.attributes});
  };
  const auto works = [&](const Node& node) {
    return has_rows(graph.values[node.results[0]].type, graph.values[structure].type) &&
           works_on_rows(*node.op, {operand_types(graph, node), node.attributes});
  };
  if (from_before) {
    std::set<ValueIndex> inside, outside;  // what nodes in the rounds and before them use
    const auto note_used = [&](const Node& node, std::set<ValueIndex>& by) {
      by.insert(node.operands.begin(), node.operands.end());
    };
    for (const NodeIndex n : parts.in) note_used(graph.nodes[n], inside);
    std::vector<NodeIndex> moved;
    std::ranges::reverse(parts.before);
    parts.before = move_some(parts.before, moved, [&](NodeIndex n) {
      const Node& node = graph.nodes[n];
      const ValueIndex result = node.results[0];
      const bool moves =
          !outside.contains(result) && (sums(node) || (inside.contains(result) && works(node)));
      note_used(node, moves ? inside : outside);
      return moves;
    });
    std::ranges::reverse(parts.before);
    parts.in.insert(parts.in.begin(), moved.rbegin(), moved.rend());
  }
  if (from_after) {
    std::set<ValueIndex> left;  // what nodes after the rounds make
    parts.after = move_some(parts.after, parts.in, [&](NodeIndex n) {
      const Node& node = graph.nodes[n];
      const bool moves = !uses_any(node, left) && (sums(node) || works(node));
      if (!moves) left.insert(node.results.begin(), node.results.end());
      return moves;
    });
  }
}

BodyMaker::BodyMaker(const Graph& graph, ValueIndex rows, ValueIndex structure)
    : graph_(graph), row_operands_{rows, structure} {}

void BodyMaker::take(const std::vector<NodeIndex>& nodes) {
  for (const NodeIndex n : nodes)
    for (const ValueIndex result : graph_.nodes[n].results) made_.insert(result);
  for (const NodeIndex n : nodes)
    for (const ValueIndex operand : graph_.nodes[n].operands) note(operand);
  nodes_ = nodes;
}

void BodyMaker::note(ValueIndex value) {
  if (made_.contains(value) || value == row_operands_[1]) return;  // the structure is there
  std::vector<ValueIndex>& list = is_row(value) ? row_operands_ : weights_;
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

int BodyMaker::number(ValueIndex value) const {
  const auto place = [value](const std::vector<ValueIndex>& list) {
    return static_cast<int>(std::ranges::find(list, value) - list.begin());
  };
  if (const int at = place(row_operands_); at < std::ssize(row_operands_)) return at;
  const int rows = static_cast<int>(row_operands_.size());
  if (const int at = place(weights_); at < std::ssize(weights_)) return rows + at;
  int number = rows + static_cast<int>(weights_.size());
  for (const NodeIndex n : nodes_) {
    if (graph_.nodes[n].results[0] == value) return number;
    ++number;
  }
  return -1;
}

VertexBody BodyMaker::body() const {
  VertexBody body;
  body.operands = static_cast<int>(row_operands_.size() + weights_.size());
  for (const NodeIndex n : nodes_) {
    const Node& node = graph_.nodes[n];
    body.steps.push_back({node.op, node.attributes, {}});
    for (const ValueIndex operand : node.operands) body.steps.back().of.push_back(number(operand));
  }
  for (const ValueIndex value : given_) body.results.push_back(number(value));
  return body;
}

std::vector<ValueIndex> BodyMaker::operands() const {
  std::vector<ValueIndex> all = row_operands_;
  all.insert(all.end(), weights_.begin(), weights_.end());
  return all;
}

bool BodyMaker::is_row(ValueIndex value) const {
  const Value& of = graph_.values[value];
  return of.kind != ValueKind::state && has_rows(of.type, graph_.values[row_operands_[1]].type);
}

void BodyMaker::give(ValueIndex value) {
  if (made_.contains(value) && std::ranges::find(given_, value) == given_.end()) given_.push_back(value);
}

void BodyMaker::add_node(GraphBuilder& g, const char* op, const VertexBody& body, std::int64_t group,
                         const RoundsForm& form, const std::string& name,
                         std::map<ValueIndex, ValueIndex>& map) const {
  Attributes attributes{{"rows", std::ssize(row_operands_)}, {"size_b", group}};
  set_body(attributes, body);
  set_rounds_form(attributes, form);
  const std::vector<ValueIndex> results = g.add_all(op, mapped(operands(), map), attributes, name);
  for (std::size_t i = 0; i < given_.size(); ++i) map[given_[i]] = results[i];
}

void add_again(GraphBuilder& g, const Node& node, std::map<ValueIndex, ValueIndex>& map) {
  const std::vector<ValueIndex> results =
      g.add_all(node.op->name, mapped(node.operands, map), node.attributes, node.name);
  for (std::size_t i = 0; i < results.size(); ++i) map[node.results[i]] = results[i];
}

}  // namespace alpa
