#include "libalpa/model/expansion.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "libalpa/base/checked.h"
#include "libalpa/base/error.h"
#include "libalpa/model/document_mask.h"
#include "libalpa/model/frame.h"
#include "libalpa/model/inputs.h"
#include "libalpa/model/numbers.h"
#include "libalpa/model/operator_settings.h"
#include "libalpa/model/weights.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex.h"

namespace alpa {
namespace {

class Expansion {
 public:
  Expansion(const ModelDefinition& model, std::int64_t samples, bool training, ModelFaults& faults)
      : model_(model),
        training_(training),
        faults_(faults),
        builder_(vertex_catalog()),
        weights_(builder_, float_type(model.training.precision), faults) {
    builder_.graph().samples = samples;
  }

  Graph run() {
    Frame frame{faults_, {}, {}, 0, {}, {}};
    frame.numbers = model_numbers(model_, faults_);
    structure_ = add_inputs(builder_, model_, frame);
    try {
      for (const Step& layer : model_.layers) use_block(layer, frame);
      take_loss(frame);
      if (model_.training.document_end >= 0 && !masks_documents_ && faults_.none())
        faults_.add(model_.layers.back().place,
                    "[training] document_end keeps documents apart in causal attention of the model's "
                    "tokens, and no layer has one; expected -1");
    } catch (const BoundReached&) {
    }
    return builder_.finish();
  }

 private:
  void count_step(const Step& step) {
    if (++steps_ <= kMaxSteps) return;
    faults_.add(step.place, fmt::format("the model expands to more than {} steps", kMaxSteps));
    throw BoundReached{};
  }

  void run_steps(const Block& block, Frame& frame) {
    for (const Step& step : block.steps) {
      count_step(step);
      if (!step.block.empty())
        use_block(step, frame);
      else if (!frame.holds(step.when, step.place))
        continue;
      else if (!step.metric.empty())
        add_to_metric(step, frame);
      else if (!step.gather.empty())
        frame.values[step.as[0]] = gathered(step, block, frame);
      else if (!step.scatter.empty())
        publish(step, block, frame);
      else
        frame.values[step.as[0]] = applied(step, frame);
    }
  }

  // Vertex functions

  static int state_index(const Block& block, const std::string& name) {
    const auto found = std::ranges::find(block.states, name, &NamedExpression::name);
    return static_cast<int>(found - block.states.begin());
  }

  std::optional<std::int64_t> state_width(const Block& block, const std::string& name, const Frame& frame) {
    const NamedExpression& state = block.states[static_cast<std::size_t>(state_index(block, name))];
    return frame.positive(state.text, state.place, fmt::format("the size of '{}'", name));
  }

  ValueIndex gathered(const Step& step, const Block& block, const Frame& frame) {
    const std::optional<std::int64_t> width = state_width(block, step.gather, frame);
    const ValueIndex rows = frame.values.at(block.inputs[0]);
    if (!width || rows == kPoisoned || structure_ == kPoisoned) return kPoisoned;
    if (!has_rows(builder_.type(rows), builder_.type(structure_))) {
      frame.fault(block.place,
                  fmt::format("the first input of a vertex function is {}, expected f32 rows of the "
                              "vertices, as an embedding gives them",
                              type_text(builder_.type(rows))));
      return kPoisoned;
    }
    return alpa::add_gather(builder_, rows, structure_, state_index(block, step.gather), *width,
                            frame.holds(step.sum, step.place));
  }

  void publish(const Step& step, const Block& block, Frame& frame) {
    const std::optional<std::vector<ValueIndex>> of = operands(step, frame);
    const std::optional<std::int64_t> width = state_width(block, step.scatter, frame);
    if (!of || !width) return;
    const TensorType& type = builder_.type(of->front());
    if (structure_ == kPoisoned) return;
    if (!has_rows(type, builder_.type(structure_)) || type.shape.back() != *width)
      return frame.fault(step.place, fmt::format("'{}' is published as {}, expected rows of {}", step.scatter,
                                                 type_text(type), *width));
    frame.published[step.scatter] = of->front();
  }

  /// Why a vertex function cannot be used here; "": it can.
  std::string unfit_for_vertices(const Block& block) const {
    if (is_in_vertex_) return "a vertex function is used inside another one";
    if (model_.graphs.empty())
      return fmt::format(
          "'{}' is a vertex function, and the model has no [graphs], whose vertices it is run for",
          block.name);
    if (model_.training.precision != Precision::f32)
      return "vertex functions compute in f32: expected [training] precision = \"f32\"";
    return "";
  }

  /// Takes the function's nodes, those from `first` on, apart.
  void form(const Step& step, const Block& block, Frame& inner, NodeIndex first) {
    std::vector<ValueIndex> states;
    for (const NamedExpression& state : block.states) {
      const auto found = inner.published.find(state.name);
      if (found == inner.published.end()) return poison_all(inner);
      states.push_back(found->second);
    }
    if (!faults_.none()) return;
    std::vector<ValueIndex> outputs;
    for (const std::string& name : block.outputs)
      if (inner.values.contains(name)) outputs.push_back(inner.values.at(name));
    try {
      const std::map<ValueIndex, ValueIndex> map = form_rounds(
          builder_, first, structure_, states, outputs, model_.training.group_samples, model_.graphs[0].form);
      for (auto& [name, value] : inner.values)
        if (const auto found = map.find(value); found != map.end()) value = found->second;
    } catch (const Error& error) {
      inner.fault(step.place, fmt::format("vertex function '{}': {}", block.name, error.happened()));
      poison_all(inner);
    }
  }

  static void poison_all(Frame& frame) {
    for (auto& [name, value] : frame.values) value = kPoisoned;
  }

  /// The values of the names in `of`; nothing where one of them is poisoned or not there.
  std::optional<std::vector<ValueIndex>> operands(const Step& step, const Frame& frame) {
    std::vector<ValueIndex> values;
    for (const std::string& name : step.of) {
      const auto found = frame.values.find(name);
      if (found == frame.values.end())
        frame.fault(step.place,
                    fmt::format("there is no '{}', since the 'when' of what gives it is 0", name));
      if (found == frame.values.end() || found->second == kPoisoned) return {};
      values.push_back(found->second);
    }
    return values;
  }

  void add_to_metric(const Step& step, const Frame& frame) {
    if (is_in_vertex_)
      return frame.fault(step.place, "a vertex function has no metrics; let it give the value");
    const std::optional<std::vector<ValueIndex>> of = operands(step, frame);
    if (!of) return;
    if (builder_.type(of->front()).dtype == DType::i32)
      return frame.fault(step.place,
                         fmt::format("metric '{}' is a sum of {}, expected numbers that are not integers",
                                     step.metric, types_text(step, *of)));
    std::vector<Metric>& metrics = builder_.graph().metrics;
    auto metric =
        std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == step.metric; });
    if (metric == metrics.end()) metric = metrics.insert(metrics.end(), {step.metric, step.per_target, {}});
    if (metric->per_target != step.per_target)
      return frame.fault(
          step.place,
          fmt::format("metric '{}' is per target in one place and per step in another", step.metric));
    metric->values.push_back(builder_.add("reduce_sum", *of, {}, frame.below(step.metric)));
  }

  ValueIndex applied(const Step& step, const Frame& frame) {
    std::optional<std::vector<ValueIndex>> of = operands(step, frame);
    std::optional<Attributes> attributes = settings(step, frame);
    if (!of || !attributes) return kPoisoned;
    const std::string types = types_text(step, *of);
    if (op_catalog().find(step.op).random) {
      // Streams are counted even where nothing is drawn: turning one rate to 0 leaves the draws of the
      // others.
      attributes->set("stream", streams_++);
      if (of->size() == 1 && (attributes->number("rate") == 0 || !training_)) return of->front();
    }
    if (step.op == "attention" && attributes->integer("causal", 0) != 0) mask_documents(*of, frame);
    try {
      return builder_.add(step.op, *of, *attributes, frame.below(step.as[0]));
    } catch (const Error& error) {
      frame.fault(step.place,
                  fmt::format("operator '{}' cannot take ({}): {}", step.op, types, error.happened()));
      return kPoisoned;
    }
  }

  /// Has tokens see those of their own document alone.
  void mask_documents(std::vector<ValueIndex>& of, const Frame& frame) {
    const std::int64_t end = model_.training.document_end;
    if (end < 0) return;
    const auto starts = document_starts(builder_, of, end, frame.below("document_starts"));
    if (starts) of.push_back(*starts);
    masks_documents_ = masks_documents_ || starts;
  }

  std::string types_text(const Step& step, const std::vector<ValueIndex>& of) const {
    std::string text;
    for (std::size_t i = 0; i < of.size(); ++i)
      text += fmt::format("{}{} {}", i ? ", " : "", step.of[i], type_text(builder_.type(of[i])));
    return text;
  }

  std::optional<Attributes> settings(const Step& step, const Frame& frame) {
    if (step.arguments.empty()) return Attributes{};
    const std::vector<OperatorSetting> known = operator_settings(op_catalog().find(step.op));
    Attributes attributes;
    bool complete = true;
    for (const Argument& argument : step.arguments) {
      if (argument.is_text) {
        attributes.set(argument.name, argument.text);
        continue;
      }
      const std::optional<Number> value = frame.number(argument.text, argument.place);
      const OperatorSetting& setting = *find_setting(known, argument.name);
      complete = complete && value && setting.accepts(*value);
      if (value && !setting.accepts(*value))
        frame.fault(argument.place, fmt::format("'{}' is {}, expected {}", argument.name, number_text(*value),
                                                setting.expected()));
      if (value && value->is_integer) attributes.set(argument.name, value->integer);
      if (value && !value->is_integer) attributes.set(argument.name, value->real);
    }
    if (!complete) return {};
    return attributes;
  }

  /// All repetitions of a block use. Names in `as` are poisoned first, so that a fault inside does not hide
  /// behind an older value of the same name.
  void use_block(const Step& step, Frame& frame) {
    if (!frame.holds(step.when, step.place)) return;
    std::optional<std::int64_t> times = 1;
    if (!step.repeat.empty()) times = frame.positive(step.repeat, step.place, "'repeat'");
    const std::string path = frame.below(step.name);
    for (std::int64_t i = 0; i < times.value_or(0); ++i) {
      count_step(step);
      if (!step.index.empty()) frame.numbers[step.index] = Number::of(i);
      use_once(step, frame, step.repeat.empty() ? path : fmt::format("{}.{}", path, i));
    }
    if (!step.index.empty()) frame.numbers.erase(step.index);
    if (!times) poison(step, frame);
  }

  static void poison(const Step& step, Frame& frame) {
    for (const std::string& name : step.as) frame.values[name] = kPoisoned;
  }

  void use_once(const Step& step, Frame& frame, const std::string& path) {
    const Block& block = model_.blocks.at(step.block);
    if (frame.depth == kMaxBlockDepth) {
      faults_.add(step.place,
                  fmt::format("blocks are used inside blocks more than {} levels deep", kMaxBlockDepth));
      throw BoundReached{};
    }
    const std::string& file = model_.sources[step.place.source];
    Frame inner{faults_, path, frame.layer, frame.depth + 1, {}, {}};
    for (const char* multiple : {kPaddedTo, kHeadsPaddedTo})
      inner.numbers[multiple] = frame.numbers.at(multiple);
    if (inner.depth == 1) inner.layer = fmt::format("{}:{}", file, step.place.at.line);
    const std::optional<std::vector<ValueIndex>> of = operands(step, frame);
    if (!of || !pass_parameters(step, block, frame, inner)) {
      poison(step, frame);
      return;
    }
    if (inner.depth == 1) weights_.begin_layer(step, path);
    for (std::size_t i = 0; i < block.inputs.size(); ++i) inner.values[block.inputs[i]] = (*of)[i];
    for (const WeightDefinition& weight : block.weights) weights_.add(weight, inner);
    if (const std::string why = block.is_vertex ? unfit_for_vertices(block) : ""; !why.empty()) {
      faults_.add(step.place, why);
      poison(step, frame);
      return;
    }
    const NodeIndex first(builder_.graph().nodes.size());
    is_in_vertex_ = is_in_vertex_ || block.is_vertex;
    run_steps(block, inner);
    if (block.is_vertex) {
      is_in_vertex_ = false;
      form(step, block, inner, first);
    }
    for (std::size_t i = 0; i < block.outputs.size(); ++i) frame.values[step.as[i]] = output(block, i, inner);
    if (inner.depth == 1) weights_.finish_layer();
  }

  ValueIndex output(const Block& block, std::size_t index, const Frame& inner) {
    const auto found = inner.values.find(block.outputs[index]);
    if (found != inner.values.end()) return found->second;
    inner.fault(block.place, fmt::format("there is no '{}', since the 'when' of what gives it is 0",
                                         block.outputs[index]));
    return kPoisoned;
  }

  /// A parameter is what the use says, else what its name means where the block is used, else its default.
  bool pass_parameters(const Step& step, const Block& block, const Frame& outer, Frame& inner) {
    bool complete = true;
    const auto pass = [&](const std::string& name, const NamedExpression* default_value) {
      std::optional<Number> value;
      for (const Argument& argument : step.arguments)
        if (argument.name == name) {
          value = outer.number(argument.text, argument.place);
          complete = complete && value;
          if (value) inner.numbers[name] = *value;
          return;
        }
      const auto known = outer.numbers.find(name);
      if (known != outer.numbers.end())
        value = known->second;
      else if (default_value)
        value = inner.number(default_value->text, default_value->place);
      if (value) inner.numbers[name] = *value;
      complete = complete && value;
    };
    for (const std::string& name : block.parameters) pass(name, nullptr);
    for (const NamedExpression& entry : block.defaults) pass(entry.name, &entry);
    return complete;
  }

  void take_loss(const Frame& frame) {
    const auto loss = frame.values.find("loss");
    if (loss == frame.values.end() || loss->second == kPoisoned) return;
    const TensorType& type = builder_.type(loss->second);
    if (type != TensorType{DType::f32, {}})
      faults_.add(model_.layers.back().place,
                  fmt::format("'loss' is {}, expected a sum over all tokens, f32[scalar]", type_text(type)));
    else if (const NodeIndex by = builder_.graph().values[loss->second].producer;
             by < 0 || !node_of(builder_.graph(), by).op->is_total)
      faults_.add(
          model_.layers.back().place,
          "'loss' is not what 'reduce_sum' gives, expected this as the last step; scale what it sums");
    builder_.graph().loss = loss->second;
  }

  const ModelDefinition& model_;
  bool training_;
  ModelFaults& faults_;
  GraphBuilder builder_;
  Weights weights_;
  std::int64_t steps_ = 0, streams_ = 0;
  ValueIndex structure_;  ///< of a model over graphs (ops/vertex.h)
  bool is_in_vertex_ = false, masks_documents_ = false;
};

}  // namespace

Graph expanded_graph(const ModelDefinition& model, std::int64_t samples, bool training, ModelFaults& faults) {
  return Expansion(model, samples, training, faults).run();
}

}  // namespace alpa
