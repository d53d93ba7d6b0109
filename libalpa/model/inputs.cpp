#include "libalpa/model/inputs.h"

#include <fmt/core.h>

#include "libalpa/base/checked.h"

namespace alpa {
namespace {

ValueIndex add_graphs(GraphBuilder& builder, const GraphsDefinition& graphs, std::int64_t group,
                      Frame& frame) {
  const auto number = [&](const std::string& text, const char* what, std::int64_t most) {
    return frame.positive(text, graphs.place, what, most);
  };
  const auto vocabulary = number(graphs.vocabulary, "'vocabulary'", kMostIds),
             classes = number(graphs.classes, "'classes'", kMostIds),
             children = number(graphs.children, "'children'", kMostChildren),
             vertices = number(graphs.vertices.empty() ? "1" : graphs.vertices, "'vertices'", kMostElements);
  frame.values["tokens"] = frame.values["labels"] = kPoisoned;
  if (!vocabulary || !classes || !children || !vertices) return kPoisoned;
  const std::int64_t samples = builder.graph().samples;
  if (samples % group != 0) {
    frame.fault(
        graphs.place,
        fmt::format(
            "{} samples are not a whole number of groups: 'batch' of [training], expected a multiple of "
            "'group_samples' = {}",
            samples, group));
    return kPoisoned;
  }
  const Shape rows{samples, *vertices}, structure{samples, *vertices, *children + 1};
  if (!checked_element_count(structure)) {
    frame.fault(graphs.place, fmt::format("{} samples with {} vertices each are more than {} elements",
                                          samples, *vertices, kMostElements));
    return kPoisoned;
  }
  std::int64_t left = group * *vertices;
  for (const std::int64_t rows : graphs.rounds) {
    if (rows > left && !graphs.vertices.empty()) {
      frame.fault(graphs.place, fmt::format("'rounds' have more than the {} rows that there is room for in a "
                                            "group of {} samples with {} vertices each",
                                            group * *vertices, group, *vertices));
      return kPoisoned;
    }
    left -= rows;
  }
  frame.values["tokens"] = builder.input(InputKind::vertices, {DType::i32, rows}, "tokens", *vocabulary);
  frame.values["labels"] = builder.input(InputKind::vertices, {DType::i32, rows}, "labels", *classes);
  return builder.input(InputKind::vertices, {DType::i32, structure}, "structure");
}

}  // namespace

ValueIndex add_inputs(GraphBuilder& builder, const ModelDefinition& model, Frame& frame) {
  const std::int64_t samples = builder.graph().samples;
  const TensorType ids{DType::i32, {samples, model.training.sequence}};  // the reader has looked at its size
  for (const auto& [kind, name] : {std::pair(InputKind::tokens, "tokens"), {InputKind::targets, "targets"}})
    if (model.inputs.empty() && model.graphs.empty()) frame.values[name] = builder.input(kind, ids, name);
  ValueIndex structure;
  for (const GraphsDefinition& graphs : model.graphs)
    structure = add_graphs(builder, graphs, model.training.group_samples, frame);
  for (const InputDefinition& input : model.inputs) {
    const bool ids_below = !input.below.empty();
    TensorType type{ids_below ? DType::i32 : float_type(model.training.precision), {samples}};
    bool complete = true;
    for (const std::string& text : input.shape) {
      const auto extent =
          frame.positive(text, input.place, fmt::format("'{}' in the shape of '{}'", text, input.name));
      complete = complete && extent;
      type.shape.push_back(extent.value_or(1));
    }
    std::optional<std::int64_t> below = 0;
    if (ids_below) below = frame.positive(input.below, input.place, "'below'", kMostIds);
    if (complete && !checked_element_count(type.shape)) {
      frame.fault(input.place, fmt::format("{} '{}' of {} samples has more than {} elements", type_text(type),
                                           input.name, samples, kMostElements));
      complete = false;
    }
    frame.values[input.name] =
        complete && below ? builder.input(InputKind::data, type, input.name, *below) : kPoisoned;
  }
  return structure;
}

}  // namespace alpa
