#include "libalpa/model/block_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/model/expression.h"
#include "libalpa/model/operator_settings.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

GraphBatching read_batching(const TomlTable& table) {
  GraphBatching batching;
  const std::span<const Word<BatchingPolicy>> words = batching_policies();
  if (table.has("batching"))
    batching.policy = table.word<BatchingPolicy>("batching", {words.begin(), words.end()});
  if (table.has("sort")) batching.by_height = table.word<bool>("sort", {{"none", false}, {"height", true}});
  return batching;
}

bool is_text_setting(const std::string& op, const std::string& setting) {
  for (const OpDef* known : op_catalog().all()) {
    if (known->name != op) continue;
    const std::vector<OperatorSetting> settings = operator_settings(*known);
    const OperatorSetting* found = find_setting(settings, setting);
    return found && found->kind == "text";
  }
  return false;
}

}  // namespace

bool is_identifier(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 64 && letter(text[0]) && std::all_of(text.begin(), text.end(), fits);
}

std::string BlockReader::read_name(const TomlValue& value) const {
  std::string name = value.string();
  if (value.kind() == TomlKind::string && !is_identifier(name))
    value.fault(
        fmt::format("'{}' is not a name: expected a letter, then letters, digits and '_', 64 at most", name));
  return name;
}

/// One name, or a list of them.
std::vector<std::string> BlockReader::read_names(const TomlValue& value) const {
  if (value.kind() != TomlKind::array) return {read_name(value)};
  std::vector<std::string> names;
  for (const TomlValue& item : value.items()) names.push_back(read_name(item));
  return names;
}

std::string BlockReader::read_expression(const TomlValue& value, const std::string& default_value) const {
  switch (value.kind()) {
    case TomlKind::absent:
      return default_value;
    case TomlKind::boolean:
      return value.boolean() ? "1" : "0";
    case TomlKind::integer:
      return number_text(Number::of(value.integer()));
    case TomlKind::string:
      break;
    default:
      return number_text(Number::of(value.number()));
  }
  std::string text = value.string();
  try {
    names_in(text);
  } catch (const Error& error) {
    value.fault(error.happened());
    return "1";
  }
  return text;
}

std::vector<NamedExpression> BlockReader::read_numbers(const TomlTable& table) const {
  std::vector<NamedExpression> numbers;
  for (const TomlEntry& entry : table.entries()) {
    if (!is_identifier(entry.key)) entry.value.fault(fmt::format("'{}' is not a name", entry.key));
    numbers.push_back({entry.key, read_expression(entry.value), place(entry.key_location)});
  }
  return numbers;
}

NamedExpression BlockReader::read_number(const TomlTable& table, const std::string& key) const {
  const TomlValue value = table.value(key);
  return {key, read_expression(value), place(value.location())};
}

std::vector<InputDefinition> BlockReader::read_inputs(const TomlTable& table) const {
  std::vector<InputDefinition> inputs;
  for (const TomlEntry& entry : table.entries()) {
    if (!is_identifier(entry.key)) entry.value.fault(fmt::format("'{}' is not a name", entry.key));
    const TomlTable definition = entry.value.table();
    InputDefinition input{entry.key, {}, "", place(entry.key_location)};
    for (const TomlValue& extent : definition.value("shape", "a list of the extents of a sample").items())
      input.shape.push_back(read_expression(extent));
    input.below = read_expression(definition.value("below"), "");
    inputs.push_back(std::move(input));
  }
  return inputs;
}

GraphsDefinition BlockReader::read_graphs(const TomlTable& table) const {
  const auto number = [&](const char* key, const char* what) {
    return read_expression(table.value(key, what));
  };
  return {number("vocabulary", "how many tokens there are"),
          number("classes", "how many labels there are"),
          number("children", "how many a vertex has at most"),
          read_expression(table.value("vertices"), ""),
          table.integers("rounds", at_least(1)),
          read_batching(table),
          {table.boolean("eager", true), table.boolean("lazy", true), table.boolean("fused", true)},
          place(table.location())};
}

std::map<std::string, Block> BlockReader::read_blocks(const TomlTable& table,
                                                      bool are_vertex_functions) const {
  std::map<std::string, Block> blocks;
  for (const TomlEntry& entry : table.entries()) {
    if (!is_identifier(entry.key)) entry.value.fault(fmt::format("'{}' is not a name", entry.key));
    blocks[entry.key] = read_block(entry, entry.value.table(), are_vertex_functions);
  }
  return blocks;
}

/// A fault in a step leaves the rest of the block sound.
Block BlockReader::read_block(const TomlEntry& entry, const TomlTable& table, bool is_vertex) const {
  Block block;
  block.name = entry.key;
  block.is_vertex = is_vertex;
  block.place = place(entry.key_location);
  const std::size_t faults = document_.fault_count();
  if (table.has("parameters")) block.parameters = read_names(table.value("parameters"));
  if (table.has("defaults")) block.defaults = read_numbers(table.table("defaults"));
  block.inputs = read_names(table.value("inputs", "a list of values"));
  block.outputs = read_names(table.value("outputs", "a list of values"));
  if (is_vertex) {
    table.value("states", "a table of what a vertex publishes, with the size of each");
    if (table.has("states")) block.states = read_numbers(table.table("states"));
  }
  table.value("steps", "a list of operators and blocks");
  if (document_.fault_count() > faults) unsound_.insert(block.place);
  if (table.has("weights"))
    for (const TomlEntry& weight : table.table("weights").entries())
      block.weights.push_back(read_weight(weight));
  for (const TomlTable& step : table.tables("steps")) block.steps.push_back(read_step(step));
  return block;
}

/// A fault in a weight leaves its name known.
WeightDefinition BlockReader::read_weight(const TomlEntry& entry) const {
  if (!is_identifier(entry.key)) entry.value.fault(fmt::format("'{}' is not a name", entry.key));
  const TomlTable table = entry.value.table();
  WeightDefinition weight;
  weight.name = entry.key;
  weight.place = place(entry.key_location);
  for (const TomlValue& extent : table.value("shape", "a list of extents").items())
    weight.shape.push_back(read_expression(extent));
  read_initializer(table.value("init", "\"zeros\", \"ones\", {normal = deviation} or {uniform = half_width}"),
                   weight);
  weight.when = read_expression(table.value("when"), "1");
  weight.decay = read_expression(table.value("decay"), "1");
  weight.trained = read_expression(table.value("trained"), "1");
  return weight;
}

void BlockReader::read_initializer(const TomlValue& value, WeightDefinition& weight) const {
  using Kind = Initializer::Kind;
  if (!value.exists()) return;
  if (value.kind() == TomlKind::string) {
    weight.kind = value.word(std::vector<std::string_view>{"zeros", "ones"}) == 0 ? Kind::zeros : Kind::ones;
    return;
  }
  const TomlTable table = value.table();
  const bool normal = table.has("normal"), uniform = table.has("uniform");
  weight.kind = normal ? Kind::normal : Kind::uniform;
  if (value.kind() == TomlKind::table && normal == uniform)
    value.fault("expected \"zeros\", \"ones\", {normal = deviation} or {uniform = half_width}");
  weight.scale = read_expression(table.value(normal ? "normal" : "uniform"));
}

Step BlockReader::read_step(const TomlTable& table) const {
  const std::size_t faults = document_.fault_count();
  if (table.has("op") + table.has("block") + table.has("metric") + table.has("gather") +
          table.has("scatter") !=
      1)
    table.fault(
        "a step has one of 'op', 'block' and 'metric', and in a vertex function 'gather' or 'scatter'");
  Step step = table.has("metric")    ? read_metric(table)
              : table.has("gather")  ? read_gather(table)
              : table.has("scatter") ? read_scatter(table)
              : table.has("block")
                  ? read_use(table, {"op", "block", "name", "of", "as", "when", "repeat", "index"})
                  : read_use(table, {"op", "of", "as", "when"});
  if (document_.fault_count() > faults) unsound_.insert(step.place);
  return step;
}

Step BlockReader::read_metric(const TomlTable& table) const {
  Step step;
  step.place = place(table.location());
  step.metric = read_name(table.value("metric"));
  step.of = {read_name(table.value("of", "the value that is summed"))};
  step.when = read_expression(table.value("when"), "1");
  if (table.has("per"))
    step.per_target = table.value("per").word(std::vector<std::string_view>{"target", "step"}) == 0;
  return step;
}

Step BlockReader::read_gather(const TomlTable& table) const {
  Step step;
  step.place = place(table.location());
  step.gather = read_name(table.value("gather"));
  step.as = {read_name(table.value("as", "the name of what the children have published"))};
  step.sum = read_expression(table.value("sum"), "0");
  step.when = read_expression(table.value("when"), "1");
  return step;
}

Step BlockReader::read_scatter(const TomlTable& table) const {
  Step step;
  step.place = place(table.location());
  step.scatter = read_name(table.value("scatter"));
  step.of = {read_name(table.value("of", "the value that is published"))};
  return step;
}

Step BlockReader::read_layer(const TomlTable& table) const {
  const std::size_t faults = document_.fault_count();
  Step layer = read_use(table, {"block", "name", "of", "as", "repeat", "index", "tie"});
  table.value("block", "the name of a block");
  if (table.has("tie"))
    for (const TomlEntry& entry : table.table("tie").entries())
      layer.ties.push_back({entry.key, entry.value.string(), place(entry.key_location)});
  if (document_.fault_count() > faults) unsound_.insert(layer.place);
  return layer;
}

/// Keys that are not `reserved` are settings of the operator or parameters of the block.
Step BlockReader::read_use(const TomlTable& table, const std::set<std::string>& reserved) const {
  Step step;
  step.place = place(table.location());
  if (table.has("op")) step.op = table.string("op");
  if (table.has("block")) {
    step.block = read_name(table.value("block"));
    step.name = table.has("name") ? read_name(table.value("name")) : step.block;
  }
  step.of = read_names(table.value("of", "the values it is applied to"));
  step.as = read_names(table.value("as", "the name of its result"));
  if (reserved.contains("repeat")) step.repeat = read_expression(table.value("repeat"), "");
  if (reserved.contains("index") && table.has("index")) step.index = read_name(table.value("index"));
  if (reserved.contains("when")) step.when = read_expression(table.value("when"), "1");
  for (const TomlEntry& entry : table.entries())
    if (!reserved.contains(entry.key)) step.arguments.push_back(read_argument(step.op, entry));
  return step;
}

Argument BlockReader::read_argument(const std::string& op, const TomlEntry& entry) const {
  const SourceLocation at = place(entry.key_location);
  if (is_text_setting(op, entry.key)) return {entry.key, entry.value.string(), true, at};
  return {entry.key, read_expression(entry.value), false, at};
}

}  // namespace alpa
