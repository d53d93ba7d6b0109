#include "libalpa/model/numbers.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"

namespace alpa {

Numbers model_numbers(const ModelDefinition& model, ModelFaults& faults) {
  Numbers numbers{{"sequence", Number::of(model.training.sequence)},
                  {"group_samples", Number::of(model.training.group_samples)},
                  {kPaddedTo, Number::of(std::max<std::int64_t>(model.training.pad_to, 1))},
                  {kHeadsPaddedTo, Number::of(std::max<std::int64_t>(model.training.pad_heads_to, 1))}};
  const auto work_out = [&](const NamedExpression& entry, bool dimension) {
    try {
      const Number value = evaluate(entry.text, numbers);
      if (dimension && (!value.is_integer || value.integer < 1 || value.integer > kMostElements))
        faults.add(entry.place, fmt::format("dimension '{}' is {}, expected an integer from 1 to {}{}",
                                            entry.name, number_text(value), kMostElements,
                                            value.is_integer ? "" : "; other numbers are [constants]"));
      numbers[entry.name] = value;
    } catch (const Error& error) {
      faults.add(entry.place, error.happened());
    }
  };
  for (const NamedExpression& entry : model.dimensions) work_out(entry, true);
  for (const NamedExpression& entry : model.constants) work_out(entry, false);
  return numbers;
}

std::optional<double> paper_flops(const ModelDefinition& model, ModelFaults& faults) {
  if (model.paper_flops.empty()) return std::nullopt;
  Numbers numbers = model_numbers(model, faults);
  numbers["batch"] = Number::of(model.training.batch);
  const NamedExpression& flops = model.paper_flops.front();
  try {
    const Number value = evaluate(flops.text, numbers);
    if (value.real < 0)
      faults.add(flops.place, fmt::format("'paper_flops' is {}, expected at least 0", number_text(value)));
    return value.real;
  } catch (const Error& error) {
    faults.add(flops.place, error.happened());
    return std::nullopt;
  }
}

}  // namespace alpa
