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

class RoundsMover {
 public:
  RoundsMover(const Graph& graph, ValueIndex structure, RoundsParts& parts)
      : graph_(graph), structure_(graph.values[structure].type), parts_(parts) {}

  /// What is added up is whole when all rounds are done, so that what uses it stays.
  void move_after() {
    std::set<ValueIndex> outside;
    std::vector<NodeIndex> left;
    for (const NodeIndex n : parts_.after) {
      const Node& node = graph_.nodes[n];
      const bool adds_up = adds_up_rows(node), moves = !uses_any(node, outside) && (adds_up || works(node));
      (moves ? parts_.in : left).push_back(n);
      if (!moves || adds_up) outside.insert(node.results.begin(), node.results.end());
    }
    parts_.after = std::move(left);
  }

  void move_before() {
    std::set<ValueIndex> used_inside, used_outside;
    const auto note_used = [&](NodeIndex n, std::set<ValueIndex>& by) {
      by.insert(graph_.nodes[n].operands.begin(), graph_.nodes[n].operands.end());
    };
    for (const NodeIndex n : parts_.in) note_used(n, used_inside);
    std::vector<NodeIndex> moved, left;
    for (auto n = parts_.before.rbegin(); n != parts_.before.rend(); ++n) {
      const Node& node = graph_.nodes[*n];
      const bool is_used = used_inside.contains(node.results[0]),
                 moves =
                     !used_outside.contains(node.results[0]) && (is_used ? works(node) : adds_up_rows(node));
      (moves ? moved : left).push_back(*n);
      note_used(*n, moves ? used_inside : used_outside);
    }
    parts_.before.assign(left.rbegin(), left.rend());
    parts_.in.insert(parts_.in.begin(), moved.rbegin(), moved.rend());
  }

 private:
  bool is_row(ValueIndex value) const { return has_rows(graph_.values[value].type, structure_); }

  bool works(const Node& node) const {
    return is_row(node.results[0]) && works_on_rows(*node.op, {operand_types(graph_, node), node.attributes});
  }
  bool adds_up_rows(const Node& node) const {
    return std::ranges::all_of(node.operands, [this](ValueIndex of) { return is_row(of); }) &&
           sums_up_rows(*node.op, {operand_types(graph_, node), node.attributes});
  }

  const Graph& graph_;
  TensorType structure_;
  RoundsParts& parts_;
};

}  // namespace

bool uses_any(const Node& node, const std::set<ValueIndex>& values) {
  return std::ranges::any_of(node.operands, [&](ValueIndex of) { return values.contains(of); });
}

void move_into_rounds(const Graph& graph, ValueIndex structure, bool from_before, bool from_after,
                      RoundsParts& parts) {
  RoundsMover mover(graph, structure, parts);
  if (from_after) mover.move_after();
  if (from_before) mover.move_before();
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
