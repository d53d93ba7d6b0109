#include "libalpa/planner/best_parts.h"

#include <algorithm>
#include <array>
#include <map>

#include "libalpa/base/positive_definite.h"

namespace alpa {
namespace {

/// What a step of P parts is a sum of: work that is shared out, what each further part takes, and the rest.
std::array<double, 3> terms(int parts) { return {1.0 / parts, parts - 1.0, 1}; }

/// The number of parts with the least on the curve that is nearest to the steps in their squares.
int least_of_curve(const std::map<int, double>& steps, int most) {
  std::vector<double> matrix(9), right(3);
  for (const auto& [parts, step_s] : steps)
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) matrix[i * 3 + j] += terms(parts)[i] * terms(parts)[j];
      right[i] += terms(parts)[i] * step_s;
    }
  const std::vector<double> weights = solved(std::move(matrix), std::move(right));
  int best = 1;
  double least = weights[0] + weights[2];
  for (int parts = 2; parts <= most; ++parts) {
    const double step_s = weights[0] * terms(parts)[0] + weights[1] * terms(parts)[1] + weights[2];
    if (step_s < least) best = parts, least = step_s;
  }
  return best;
}

}  // namespace

int best_parts(int first, int most, const std::function<double(int)>& step_s) {
  std::map<int, double> steps;
  const auto try_out = [&](int parts) {
    return steps.contains(parts) ? steps[parts] : steps[parts] = step_s(parts);
  };
  int best = std::clamp(first, 1, most);
  try_out(best);
  const auto go_on = [&](const auto& next) {
    for (int parts = next(best); parts != best && try_out(parts) < steps[best]; parts = next(best))
      best = parts;
  };
  go_on([&](int parts) { return std::min(2 * parts, most); });
  go_on([&](int parts) { return std::max(parts / 2, 1); });
  if (steps.size() >= 3) {
    const int fitted = least_of_curve(steps, most);
    if (try_out(fitted) < steps[best]) best = fitted;
  }
  return best;
}

}  // namespace alpa
