#include "libalpa/graph/vertex_body.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace alpa {
namespace {

/// The parts of a text between separators; none of an empty one.
std::vector<std::string_view> parts_between(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + separator.size());
  }
  return parts;
}

std::vector<int> numbers_of(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string_view part : parts_between(text, " "))
    std::from_chars(part.data(), part.data() + part.size(), numbers.emplace_back());
  return numbers;
}

AttributeValue value_of_text(std::string_view text) {
  if (text.front() == '\'') return std::string(text.substr(1, text.size() - 2));
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end) return whole;
  double number = 0;
  std::from_chars(text.data(), end, number);
  return number;
}

/// What Attributes::to_string() has written.
Attributes attributes_of_text(std::string_view text) {
  Attributes attributes;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    const bool quoted = text[equals + 1] == '\'';
    std::size_t end = text.find(quoted ? '\'' : ' ', equals + 2);
    end = end == std::string_view::npos ? text.size() : end + (quoted ? 1 : 0);
    attributes.set(std::string(text.substr(0, equals)),
                   value_of_text(text.substr(equals + 1, end - equals - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return attributes;
}

/// "name attributes : values"
VertexBody::Step step_of_text(std::string_view text, OpCatalog catalog) {
  const std::size_t colon = text.rfind(" : ");
  const std::string_view call = text.substr(0, colon);
  const std::size_t space = call.find(' ');
  return {&catalog.find(call.substr(0, space)),
          space == std::string_view::npos ? Attributes() : attributes_of_text(call.substr(space + 1)),
          numbers_of(text.substr(colon + 3))};
}

}  // namespace

RoundsForm rounds_form_of(const Attributes& attributes) {
  const auto on = [&](const char* name) { return attributes.integer(name, 1) != 0; };
  return {on("eager"), on("lazy"), on("fused")};
}

void set_rounds_form(Attributes& attributes, const RoundsForm& form) {
  const auto set = [&](const char* name, bool on) {
    if (!on) attributes.set(name, std::int64_t{0});
  };
  set("eager", form.eager);
  set("lazy", form.lazy);
  set("fused", form.fused);
}

VertexBody body_of(const Attributes& attributes, int operands, OpCatalog catalog) {
  VertexBody body;
  body.operands = operands;
  for (const std::string_view step : parts_between(attributes.text("body"), "; "))
    body.steps.push_back(step_of_text(step, catalog));
  body.results = numbers_of(attributes.text("results"));
  body.states = numbers_of(attributes.text("states"));
  const std::vector<int> returns = numbers_of(attributes.text("returns"));
  for (std::size_t i = 0; i + 2 < returns.size(); i += 3)
    body.returns.push_back({returns[i], returns[i + 1], returns[i + 2] != 0});
  return body;
}

void set_body(Attributes& attributes, const VertexBody& body) {
  std::vector<std::string> steps;
  for (const VertexBody::Step& step : body.steps) {
    const std::string settings = step.attributes.to_string();
    steps.push_back(fmt::format("{}{}{} : {}", step.op->name, settings.empty() ? "" : " ", settings,
                                fmt::join(step.of, " ")));
  }
  std::vector<int> returns;
  for (const VertexBody::Return& each : body.returns)
    returns.insert(returns.end(), {each.value, each.state, each.to_each ? 1 : 0});
  attributes.set("body", fmt::format("{}", fmt::join(steps, "; ")));
  attributes.set("results", fmt::format("{}", fmt::join(body.results, " ")));
  attributes.set("states", fmt::format("{}", fmt::join(body.states, " ")));
  attributes.set("returns", fmt::format("{}", fmt::join(returns, " ")));
}

bool is_sum_over_rows(const TensorType& type) { return type.shape.size() < 3; }

std::vector<TensorType> value_types(const VertexBody& body, std::span<const TensorType> operands) {
  std::vector<TensorType> types(operands.begin(), operands.end());
  for (const VertexBody::Step& step : body.steps) {
    std::vector<TensorType> of;
    for (const int value : step.of) of.push_back(types[static_cast<std::size_t>(value)]);
    types.push_back(result_types(*step.op, {of, step.attributes}).front());
  }
  return types;
}

}  // namespace alpa
