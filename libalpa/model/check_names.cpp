#include "libalpa/model/check_names.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/other_tools.h"
#include "libalpa/model/expression.h"
#include "libalpa/model/operator_settings.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

template <class Range, class Name>
std::vector<std::string> names_of(const Range& range, Name name) {
  std::vector<std::string> names;
  for (const auto& entry : range) names.push_back(name(entry));
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// All parameters of a block, those with defaults last.
std::vector<std::string> all_parameters(const Block& block) {
  std::vector<std::string> names = block.parameters;
  for (const NamedExpression& entry : block.defaults) names.push_back(entry.name);
  return names;
}

/// Checks the body of one block, or of the model, which is a block whose steps are the layers.
class BodyCheck {
 public:
  BodyCheck(const ModelDefinition& model, const std::set<SourceLocation>& unsound, ModelFaults& faults)
      : model_(model), unsound_(unsound), faults_(faults) {}

  void check_block(const Block& block) {
    declare_numbers(block);
    for (const NamedExpression& state : block.states) check_expression(state.text, state.place);
    for (const std::string& input : block.inputs) declare(input, block.place);
    for (const WeightDefinition& weight : block.weights) check_weight(weight);
    for (const Step& step : block.steps) {
      check_step(step);
      check_states(step, block);
    }
    if (block.is_vertex && (block.states.empty() || block.inputs.empty()))
      faults_.add(block.place, "a vertex function has states that vertices publish, and an input");
    for (const NamedExpression& state : block.states) check_state(state, block);
    for (const std::string& output : block.outputs) use(output, block.place, "output");
    report_unused();
  }

  void check_model() {
    numbers_ = {"sequence", "group_samples", "batch"};
    for (const auto* table : {&model_.dimensions, &model_.constants})
      for (const NamedExpression& entry : *table) declare_number(entry.name, entry.text, entry.place);
    for (const GraphsDefinition& graphs : model_.graphs) {
      values_["tokens"] = values_["labels"] = {graphs.place, false};
      for (const std::string& text : {graphs.vocabulary, graphs.classes, graphs.children, graphs.vertices})
        check_expression(text, graphs.place);
      if (!model_.inputs.empty())
        faults_.add(graphs.place, "a model whose samples are graphs has no other inputs");
    }
    if (model_.inputs.empty() && model_.graphs.empty())
      for (const char* input : {"tokens", "targets"}) values_[input] = {{}, true};
    for (const InputDefinition& input : model_.inputs) {
      declare(input.name, input.place);
      for (const std::string& extent : input.shape) check_expression(extent, input.place);
      check_expression(input.below, input.place);
    }
    for (const Step& layer : model_.layers) check_step(layer);
    for (const NamedExpression& flops : model_.paper_flops) check_expression(flops.text, flops.place);
    if (model_.layers.empty()) return;
    use("loss", model_.layers.back().place, "the layers give no");
    report_unused();
    if (unsound_.empty()) report_unused_numbers();
  }

 private:
  struct Known {
    SourceLocation place;
    bool used = false;
  };

  // Numbers

  void declare_numbers(const Block& block) {
    for (const std::string& name : block.parameters) {
      if (contains(numbers_, name))
        faults_.add(block.place, fmt::format("parameter '{}' is listed twice", name));
      numbers_.push_back(name);
    }
    for (const NamedExpression& entry : block.defaults) declare_number(entry.name, entry.text, entry.place);
  }

  void declare_number(const std::string& name, const std::string& text, const SourceLocation& place) {
    check_expression(text, place);
    const bool is_setting = name == "sequence" || name == "group_samples" || name == "batch";
    if (contains(numbers_, name))
      faults_.add(place, fmt::format("there is already a number '{}'{}", name,
                                     is_setting ? fmt::format("; try: {} in [training]", name) : ""));
    numbers_.push_back(name);
  }

  void check_expression(const std::string& text, const SourceLocation& place) {
    if (text.empty()) return;
    for (const std::string& name : names_in(text)) {
      used_numbers_.insert(name);
      if (!contains(numbers_, name))
        faults_.add(
            place, fmt::format("in '{}': no number is named '{}'{}", text, name, suggestion(name, numbers_)));
    }
  }

  // Values

  void declare(const std::string& name, const SourceLocation& place) {
    if (!values_.insert({name, {place, false}}).second)
      faults_.add(place, fmt::format("there is already a value '{}'", name));
  }

  void use(const std::string& name, const SourceLocation& place, std::string_view what) {
    const auto found = values_.find(name);
    if (found != values_.end()) {
      found->second.used = true;
      return;
    }
    faults_.add(
        place,
        fmt::format("{} value '{}'{}", what, name,
                    suggestion(name, names_of(values_, [](const auto& entry) { return entry.first; }))));
  }

  /// A step may give a name anew; the older value must have been used by then.
  void give(const std::string& name, const Step& step) {
    const auto found = values_.find(name);
    if (found != values_.end() && !found->second.used && step.when == "1")
      faults_.add(step.place, fmt::format("value '{}' is replaced before anything uses it", name));
    values_[name] = {step.place, false};
  }

  void report_unused() {
    for (const auto& [name, known] : values_)
      if (!known.used) faults_.add(known.place, fmt::format("nothing uses the value '{}'", name));
  }

  /// Blocks take up numbers by their parameters' names.
  void report_unused_numbers() {
    for (const Step& layer : model_.layers) {
      const auto found = model_.blocks.find(layer.block);
      if (found == model_.blocks.end()) return;
      for (const std::string& name : all_parameters(found->second)) used_numbers_.insert(name);
    }
    for (const auto* table : {&model_.dimensions, &model_.constants})
      for (const NamedExpression& entry : *table)
        if (!used_numbers_.contains(entry.name))
          faults_.add(entry.place,
                      fmt::format("nothing uses the number '{}'{}", entry.name, number_meant(entry.name)));
  }

  /// Which number of the model, or setting, one that nothing uses was meant to be.
  std::string number_meant(const std::string& unused) const {
    std::vector<std::string> used;
    for (const auto* table : {&model_.dimensions, &model_.constants})
      for (const NamedExpression& entry : *table)
        if (used_numbers_.contains(entry.name)) used.push_back(entry.name);
    const std::string near = suggestion(unused, used), where = where_set(unused);
    if (!near.empty()) return near;
    if (!where.empty()) return "; try: " + where;
    return used.empty() ? "" : fmt::format("; try: one of {}", fmt::join(used, ", "));
  }

  void check_weight(const WeightDefinition& weight) {
    declare(weight.name, weight.place);
    for (const std::string& extent : weight.shape) check_expression(extent, weight.place);
    check_expression(weight.scale, weight.place);
    check_expression(weight.when, weight.place);
    check_expression(weight.decay, weight.place);
    check_expression(weight.trained, weight.place);
  }

  // States of a vertex function

  void check_states(const Step& step, const Block& block) {
    const std::string& state = step.gather.empty() ? step.scatter : step.gather;
    if (state.empty()) return;
    const std::vector<std::string> names =
        names_of(block.states, [](const NamedExpression& each) { return each.name; });
    if (!contains(names, state))
      faults_.add(step.place, block.is_vertex
                                  ? fmt::format("no state is named '{}'{}", state, suggestion(state, names))
                                  : "'gather' and 'scatter' are of vertex functions, [vertex.NAME]");
  }

  void check_state(const NamedExpression& state, const Block& block) {
    std::ptrdiff_t gathers = 0, scatters = 0;
    for (const Step& step : block.steps) {
      gathers += step.gather == state.name;
      scatters += step.scatter == state.name;
    }
    if (gathers == 0) faults_.add(state.place, fmt::format("nothing gathers the state '{}'", state.name));
    if (scatters != 1)
      faults_.add(state.place, fmt::format("the state '{}' is published (scatter) {} times, expected once",
                                           state.name, scatters));
  }

  // Steps

  void check_step(const Step& step) {
    if (unsound_.contains(step.place)) return pass_over(step);
    for (const std::string& name : step.of) use(name, step.place, "unknown");
    check_expression(step.when, step.place);
    check_expression(step.repeat, step.place);
    check_expression(step.sum, step.place);
    const std::vector<std::string> outside = numbers_;
    if (!step.index.empty()) declare_index(step);
    for (const Argument& argument : step.arguments)
      if (!argument.is_text) check_expression(argument.text, argument.place);
    if (!step.op.empty()) check_operator(step);
    if (!step.block.empty()) check_use(step);
    numbers_ = outside;
    for (const std::string& name : step.as) give(name, step);
  }

  /// It is a number for this use alone, which must make something of it.
  void declare_index(const Step& step) {
    if (step.repeat.empty())
      faults_.add(step.place, fmt::format("'index' names '{}', but there is no 'repeat'", step.index));
    const auto mentions = [&](const Argument& argument) {
      return !argument.is_text && contains(names_in(argument.text), step.index);
    };
    const auto block = model_.blocks.find(step.block);
    if (std::none_of(step.arguments.begin(), step.arguments.end(), mentions) &&
        (block == model_.blocks.end() || !contains(all_parameters(block->second), step.index)))
      faults_.add(step.place, fmt::format("nothing uses the number '{}'", step.index));
    declare_number(step.index, "", step.place);
  }

  /// What an unsound step mentions counts as used and as given.
  void pass_over(const Step& step) {
    for (const std::string& name : step.of)
      if (values_.contains(name)) values_[name].used = true;
    for (const std::string& name : step.as) values_[name] = {step.place, true};
  }

  void check_operator(const Step& step) {
    std::vector<std::string> names;
    const OpDef* op = nullptr;
    for (const OpDef* known : op_catalog().all()) {
      if (known->internal) continue;
      names.emplace_back(known->name);
      if (known->name == step.op) op = known;
    }
    if (!op) {
      faults_.add(step.place, fmt::format("unknown operator '{}'{}", step.op, suggestion(step.op, names)));
      return;
    }
    if (step.as.size() != 1)
      faults_.add(step.place, fmt::format("an operator gives one value, 'as' names {}", step.as.size()));
    check_settings(step, operator_settings(*op));
  }

  void check_settings(const Step& step, const std::vector<OperatorSetting>& settings) {
    std::vector<std::string> names{"when"};
    for (const OperatorSetting& setting : settings) names.push_back(setting.name);
    for (const Argument& argument : step.arguments)
      if (!find_setting(settings, argument.name))
        faults_.add(argument.place, fmt::format("operator '{}' has no setting '{}'{}", step.op, argument.name,
                                                suggestion(argument.name, names)));
    for (const OperatorSetting& setting : settings) {
      const auto given = [&](const Argument& argument) { return argument.name == setting.name; };
      if (!setting.optional && std::none_of(step.arguments.begin(), step.arguments.end(), given))
        faults_.add(step.place,
                    fmt::format("operator '{}' wants '{}', {}", step.op, setting.name, setting.expected()));
    }
  }

  void check_use(const Step& step) {
    if (!instances_.insert(step.name).second)
      faults_.add(step.place,
                  fmt::format("two uses of blocks are named '{}'; give each a 'name' of its own", step.name));
    const auto found = model_.blocks.find(step.block);
    if (found == model_.blocks.end() || unsound_.contains(found->second.place)) return;
    const Block& block = found->second;
    const auto count = [&](std::string_view key, std::size_t given, const std::vector<std::string>& wanted) {
      if (given != wanted.size())
        faults_.add(step.place, fmt::format("block '{}' has {} {}, '{}' names {}", block.name, wanted.size(),
                                            key == "of" ? "inputs" : "outputs", key, given));
    };
    count("of", step.of.size(), block.inputs);
    count("as", step.as.size(), block.outputs);
    check_parameters(step, block);
  }

  void check_parameters(const Step& step, const Block& block) {
    std::vector<std::string> names = all_parameters(block), given;
    for (const char* key : {"name", "repeat", "index", "when", "tie"}) names.emplace_back(key);
    for (const Argument& argument : step.arguments) {
      given.push_back(argument.name);
      if (!contains(all_parameters(block), argument.name))
        faults_.add(argument.place, fmt::format("block '{}' has no parameter '{}'{}", block.name,
                                                argument.name, suggestion(argument.name, names)));
    }
    for (const std::string& name : block.parameters)
      if (!contains(given, name) && !contains(numbers_, name))
        faults_.add(
            step.place,
            fmt::format("block '{}' wants the parameter '{}': give it here, or have a number of that name",
                        block.name, name));
  }

  const ModelDefinition& model_;
  const std::set<SourceLocation>& unsound_;
  ModelFaults& faults_;
  std::vector<std::string> numbers_;
  std::set<std::string> used_numbers_, instances_;
  std::map<std::string, Known> values_;
};

/// Follows uses depth first and reports the step that closes a ring.
class RecursionCheck {
 public:
  RecursionCheck(const ModelDefinition& model, ModelFaults& faults) : model_(model), faults_(faults) {}

  void visit(const std::string& name) {
    if (!seen_.insert(name).second) return;
    trail_.push_back(name);
    for (const Step& step : model_.blocks.at(name).steps) {
      if (step.block.empty() || !model_.blocks.contains(step.block)) continue;
      const auto ring = std::find(trail_.begin(), trail_.end(), step.block);
      if (ring != trail_.end())
        report(step, {ring, trail_.end()});
      else if (trail_.size() < 1000)
        visit(step.block);
    }
    trail_.pop_back();
  }

 private:
  void report(const Step& step, const std::vector<std::string>& ring) {
    std::string text;
    for (const std::string& name : ring) text += name + " -> ";
    faults_.add(step.place, fmt::format("block '{}' contains itself: {}{}", step.block, text, step.block));
  }

  const ModelDefinition& model_;
  ModelFaults& faults_;
  std::set<std::string> seen_;
  std::vector<std::string> trail_;
};

}  // namespace

void check_names(const ModelDefinition& model, const std::set<SourceLocation>& unsound, ModelFaults& faults) {
  RecursionCheck recursion(model, faults);
  for (const auto& [name, block] : model.blocks) {
    recursion.visit(name);
    if (!unsound.contains(block.place)) BodyCheck(model, unsound, faults).check_block(block);
  }
  BodyCheck(model, unsound, faults).check_model();
}

}  // namespace alpa
