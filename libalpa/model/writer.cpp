#include "libalpa/model/writer.h"

#include <fmt/format.h>

#include "libalpa/base/options.h"
#include "libalpa/model/expression.h"

namespace alpa {
namespace {

std::string expression(const std::string& text) { return is_plain_number(text) ? text : toml_string(text); }

std::string list(const std::vector<std::string>& items, std::string (*item_text)(const std::string&)) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item_text(item);
  return "[" + text + "]";
}

std::string numbers(const std::string& header, const std::vector<NamedExpression>& entries) {
  if (entries.empty()) return "";
  std::string text = "\n[" + header + "]\n";
  for (const NamedExpression& entry : entries)
    text += fmt::format("{} = {}\n", entry.name, expression(entry.text));
  return text;
}

/// The keys of a step, in one order.
std::vector<std::string> keys(const Step& step) {
  std::vector<std::string> text;
  if (!step.op.empty()) text.push_back("op = " + toml_string(step.op));
  if (!step.block.empty()) text.push_back("block = " + toml_string(step.block));
  if (!step.metric.empty()) text.push_back("metric = " + toml_string(step.metric));
  if (!step.gather.empty()) text.push_back("gather = " + toml_string(step.gather));
  if (!step.scatter.empty()) text.push_back("scatter = " + toml_string(step.scatter));
  if (!step.sum.empty() && step.sum != "0") text.push_back("sum = " + expression(step.sum));
  if (!step.per_target) text.push_back("per = \"step\"");
  if (!step.name.empty()) text.push_back("name = " + toml_string(step.name));
  if (!step.repeat.empty()) text.push_back("repeat = " + expression(step.repeat));
  if (!step.index.empty()) text.push_back("index = " + toml_string(step.index));
  const bool is_use = !step.op.empty() || !step.block.empty();
  if (!step.of.empty())
    text.push_back("of = " + (is_use ? list(step.of, toml_string) : toml_string(step.of[0])));
  if (!step.as.empty())
    text.push_back("as = " + (is_use ? list(step.as, toml_string) : toml_string(step.as[0])));
  if (step.when != "1") text.push_back("when = " + expression(step.when));
  for (const Argument& argument : step.arguments)
    text.push_back(argument.name + " = " +
                   (argument.is_text ? toml_string(argument.text) : expression(argument.text)));
  std::string ties;
  for (const Tie& tie : step.ties)
    ties +=
        fmt::format("{}{} = {}", ties.empty() ? "" : ", ", toml_string(tie.weight), toml_string(tie.target));
  if (!ties.empty()) text.push_back("tie = {" + ties + "}");
  return text;
}

std::string weight_toml(const WeightDefinition& weight) {
  using Kind = Initializer::Kind;
  std::string init = weight.kind == Kind::ones ? "\"ones\"" : "\"zeros\"";
  if (weight.kind == Kind::normal) init = fmt::format("{{normal = {}}}", expression(weight.scale));
  if (weight.kind == Kind::uniform) init = fmt::format("{{uniform = {}}}", expression(weight.scale));
  return fmt::format("{} = {{shape = {}, init = {}{}{}{}}}\n", weight.name, list(weight.shape, expression),
                     init, weight.when == "1" ? "" : ", when = " + expression(weight.when),
                     weight.decay == "1" ? "" : ", decay = " + expression(weight.decay),
                     weight.trained == "1" ? "" : ", trained = " + expression(weight.trained));
}

std::string block_toml(const Block& block) {
  const std::string name = fmt::format("{}.{}", block.is_vertex ? "vertex" : "block", block.name);
  std::string text = fmt::format("\n[{}]\nparameters = {}\ninputs = {}\noutputs = {}\nsteps = [\n", name,
                                 list(block.parameters, toml_string), list(block.inputs, toml_string),
                                 list(block.outputs, toml_string));
  for (const Step& step : block.steps) text += fmt::format("  {{{}}},\n", fmt::join(keys(step), ", "));
  text += "]\n" + numbers(name + ".defaults", block.defaults) + numbers(name + ".states", block.states);
  if (block.weights.empty()) return text;
  text += fmt::format("\n[{}.weights]\n", name);
  for (const WeightDefinition& weight : block.weights) text += weight_toml(weight);
  return text;
}

std::string input_toml(const InputDefinition& input) {
  return fmt::format("\n[input.{}]\nshape = {}\n{}", input.name, list(input.shape, expression),
                     input.below.empty() ? "" : "below = " + expression(input.below) + "\n");
}

std::string graphs_toml(const GraphsDefinition& graphs) {
  return fmt::format(
      "\n[graphs]\nvocabulary = {}\nclasses = {}\nchildren = {}\n{}{}{}{}{}{}{}",
      expression(graphs.vocabulary), expression(graphs.classes), expression(graphs.children),
      graphs.vertices.empty() ? "" : fmt::format("vertices = {}\n", expression(graphs.vertices)),
      graphs.rounds.empty() ? "" : fmt::format("rounds = [{}]\n", fmt::join(graphs.rounds, ", ")),
      graphs.batching.policy ? fmt::format("batching = \"{}\"\n", batching_name(*graphs.batching.policy))
                             : "",
      graphs.batching.by_height ? "sort = \"height\"\n" : "", graphs.form.eager ? "" : "eager = false\n",
      graphs.form.lazy ? "" : "lazy = false\n", graphs.form.fused ? "" : "fused = false\n");
}

}  // namespace

std::string model_toml(const ModelDefinition& model) {
  std::string text = fmt::format("name = {}\n", toml_string(model.name));
  for (const NamedExpression& flops : model.paper_flops)
    text += fmt::format("paper_flops = {}\n", expression(flops.text));
  text += numbers("dimensions", model.dimensions) + numbers("constants", model.constants);
  text += "\n[training]\n" + options_text(model.training);
  for (const InputDefinition& input : model.inputs) text += input_toml(input);
  for (const GraphsDefinition& graphs : model.graphs) text += graphs_toml(graphs);
  for (const Step& layer : model.layers)
    text += fmt::format("\n[[layer]]\n{}\n", fmt::join(keys(layer), "\n"));
  for (const auto& [name, block] : model.blocks) text += block_toml(block);
  return text;
}

}  // namespace alpa
