#include "libalpa/model/weights.h"

#include <fmt/core.h>

#include "libalpa/base/checked.h"
#include "libalpa/base/constraint.h"

namespace alpa {
namespace {

std::optional<Shape> shape_of(const WeightDefinition& weight, const Frame& frame) {
  Shape shape;
  for (const std::string& text : weight.shape) {
    const auto extent =
        frame.positive(text, weight.place, fmt::format("'{}' in the shape of '{}'", text, weight.name));
    if (!extent) return {};
    shape.push_back(*extent);
    if (checked_element_count(shape)) continue;
    frame.fault(weight.place, fmt::format("'{}' has more than {} elements", weight.name, kMostElements));
    return {};
  }
  return shape;
}

/// As of State: empty where nothing is padding.
Shape unpadded_of(const WeightDefinition& weight, const Frame& frame, const Shape& shape) {
  Frame without = frame;
  bool may_be_padded = false;
  for (const char* multiple : {kPaddedTo, kHeadsPaddedTo}) {
    may_be_padded |= frame.numbers.at(multiple).integer != 1;
    without.numbers.erase(multiple);
  }
  if (!may_be_padded) return {};
  const std::optional<Shape> unpadded = shape_of(weight, without);
  return unpadded && *unpadded != shape ? *unpadded : Shape();
}

}  // namespace

void Weights::begin_layer(const Step& layer, const std::string& path) {
  builder_.begin_layer(path);
  layer_ = path;
  of_layer_.clear();
  for (const Tie& tie : layer.ties) ties_[path + "." + tie.weight] = &tie;
}

void Weights::finish_layer() {
  for (const auto& [name, tie] : ties_)
    faults_.add(tie->place, fmt::format("this layer has no weight '{}'{}", tie->weight,
                                        suggestion(tie->weight, of_layer_)));
  ties_.clear();
}

void Weights::add(const WeightDefinition& weight, Frame& frame) {
  if (!frame.holds(weight.when, weight.place)) return;
  ValueIndex& value = frame.values[weight.name];
  value = kPoisoned;
  const std::optional<Shape> shape = shape_of(weight, frame);
  const std::optional<Number> scale = frame.number(weight.scale, weight.place);
  if (!shape || !scale) return;
  if (const Range spreads = between(0, kMostNumber); !spreads.contains(scale->real)) {
    frame.fault(weight.place, fmt::format("'{}' starts with a spread of {}, expected a number {}",
                                          weight.name, number_text(*scale), range_text(spreads)));
    return;
  }
  const std::string name = frame.below(weight.name);
  const bool trained = frame.holds(weight.trained, weight.place);
  const TensorType type{trained ? type_ : DType::f32, *shape};
  const auto tie = ties_.find(name);
  if (tie != ties_.end()) {
    value = tied(*tie->second, name, type);
    ties_.erase(tie);
    return;
  }
  if (all_.size() == kMaxWeights) {
    faults_.add(weight.place, fmt::format("the model expands to more than {} weights", kMaxWeights));
    throw BoundReached{};
  }
  value = builder_.state(name, type, {weight.kind, scale->real}, trained);
  builder_.graph().states.back().decays = frame.holds(weight.decay, weight.place);
  builder_.graph().states.back().unpadded = unpadded_of(weight, frame, *shape);
  all_[name] = value;
  of_layer_.push_back(name.substr(layer_.size() + 1));
}

ValueIndex Weights::tied(const Tie& tie, const std::string& name, const TensorType& type) {
  const auto target = all_.find(tie.target);
  if (target == all_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, value] : all_) names.push_back(known);
    faults_.add(tie.place, fmt::format("no weight before this layer is named '{}'{}", tie.target,
                                       suggestion(tie.target, names)));
    return kPoisoned;
  }
  if (builder_.type(target->second) == type) return target->second;
  faults_.add(tie.place, fmt::format("'{}' is {}, and cannot be tied to '{}', which is {}", name,
                                     type_text(type), tie.target, type_text(builder_.type(target->second))));
  return kPoisoned;
}

}  // namespace alpa
