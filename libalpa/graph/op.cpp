#include "libalpa/graph/op.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "libalpa/base/error.h"
#include "libalpa/graph/vertex_rows.h"

namespace alpa {

namespace {

Attributes timed_attributes(const OpDef& op, const Attributes& attributes) {
  const std::string untimed = fmt::format(" {} ", op.untimed);
  Attributes timed;
  for (const auto& [name, value] : attributes.all())
    if (untimed.find(fmt::format(" {} ", name)) == std::string::npos) timed.set(name, value);
  return timed;
}

/// of(the same call with as many vertices for each sample as typical data has): what the call amounts to.
template <class Of>
auto on_typical_rows(const OpDef& op, const OpCall& call, const VertexRows& rows, const Of& of) {
  const Attributes attributes = without_vertex_rows(call.attributes);
  const ShardingRule rule = rule_of(op, {call.operands, attributes});
  const RowFactors factors = row_factors(rule, rows.operand).value();
  std::vector<TensorType> operands(call.operands.begin(), call.operands.end());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (factors.lead(rule.operands[i]))
      operands[i].shape[1] = std::max<std::int64_t>(1, (rows.typical + rows.group / 2) / rows.group);
  return of(OpCall{operands, attributes});
}

}  // namespace

ShardingRule rule_of(const OpDef& op, const OpCall& call) {
  return in_step([&] { return fmt::format("applying operator '{}'", op.name); },
                 [&] {
                   ShardingRule rule =
                       op.make_rule ? op.make_rule(call)
                                    : parse_rule(op.rule, call.operands, size_attributes(call.attributes));
                   if (const auto rows = vertex_rows_of(call.attributes)) split_by_groups(rule, *rows);
                   return rule;
                 });
}

std::vector<TensorType> result_types(const OpDef& op, const OpCall& call) {
  return result_types(op, call, rule_of(op, call));
}

std::vector<TensorType> result_types(const OpDef& op, const OpCall& call, const ShardingRule& rule) {
  for (int i = 0; i < static_cast<int>(call.operands.size()); ++i)
    if ((call.operands[i].dtype == DType::i32) != (i == op.ids))
      throw Error(ErrorKind::input,
                  fmt::format("operand {} of operator '{}' wants {}, got {}", i, op.name,
                              i == op.ids ? "i32" : "floating point", type_text(call.operands[i])));
  std::vector<TensorType> types;
  std::string_view names = op.result_types;
  for (int r = 0; r < static_cast<int>(rule.results.size()); ++r) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);
    const int overwritten = op.overwritten(r);
    const bool same = name.empty() || name == "same";
    types.push_back({same ? call.operands[std::max(overwritten, 0)].dtype : dtype_from_name(name),
                     result_shape(rule, r)});
  }
  return types;
}

std::map<std::string, std::int64_t> size_attributes(const Attributes& attributes) {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, value] : attributes.all())
    if (name.starts_with("size_")) sizes[name.substr(5)] = std::get<std::int64_t>(value);
  return sizes;
}

double flops_of(const OpDef& op, const OpCall& call) {
  if (const auto rows = vertex_rows_of(call.attributes))
    return on_typical_rows(op, call, *rows, [&](const OpCall& typical) { return flops_of(op, typical); });
  if (op.flops) return op.flops(call);
  double points = 1;
  for (const Factor& factor : rule_of(op, call).factors) points *= static_cast<double>(factor.size);
  return points * op.flops_per_point;
}

std::int64_t bytes_moved_by(const OpDef& op, const OpCall& call) {
  if (const auto rows = vertex_rows_of(call.attributes))
    return on_typical_rows(op, call, *rows,
                           [&](const OpCall& typical) { return bytes_moved_by(op, typical); });
  if (op.bytes_moved) return op.bytes_moved(call);
  std::int64_t bytes = 0;
  for (const TensorType& type : call.operands) bytes += byte_count(type);
  for (const TensorType& type : result_types(op, call)) bytes += byte_count(type);
  return bytes;
}

std::int64_t workspace_of(const OpDef& op, const OpCall& call, DeviceKind kind) {
  const auto bytes = kind == DeviceKind::cuda ? op.cuda_workspace_bytes : op.cpu_workspace_bytes;
  return bytes ? bytes(call) : 0;
}

std::string signature_of(const OpDef& op, const OpCall& call) {
  std::string text(op.name);
  const std::string attributes = timed_attributes(op, call.attributes).to_string();
  if (!attributes.empty()) text += " " + attributes;
  for (const TensorType& type : call.operands) text += " " + type_text(type);
  return text;
}

const OpDef& OpCatalog::find(std::string_view name) const {
  for (const OpDef* op : ops_)
    if (op->name == name) return *op;
  std::vector<std::string> names;
  for (const OpDef* op : ops_) names.emplace_back(op->name);
  const std::string near = nearest_name(std::string(name), names);
  throw Error(ErrorKind::input, fmt::format("unknown operator '{}'", name),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

}  // namespace alpa
