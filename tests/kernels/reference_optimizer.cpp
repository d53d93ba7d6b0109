#include <cmath>

#include "tests/kernels/reference_call.h"

namespace alpa {
namespace {

/// Where elements of a parameter go in a tensor that lacks one of its dimensions.
class PlacesWithout {
 public:
  PlacesWithout(Shape shape, std::int64_t left_out) : shape_(std::move(shape)), left_out_(left_out) {}

  std::size_t count() const {
    std::size_t count = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      if (static_cast<std::int64_t>(d) != left_out_) count *= static_cast<std::size_t>(shape_[d]);
    return count;
  }

  std::size_t of(std::size_t element) const {
    std::size_t place = 0, stride = 1;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const auto extent = static_cast<std::size_t>(shape_[d]);
      if (static_cast<std::int64_t>(d) != left_out_) {
        place += element % extent * stride;
        stride *= extent;
      }
      element /= extent;
    }
    return place;
  }

 private:
  Shape shape_;
  std::int64_t left_out_;
};

std::int64_t rows_of(const ReferenceCall& c) { return c.attributes.integer("rows"); }
std::int64_t columns_of(const ReferenceCall& c) { return c.attributes.integer("columns"); }

double fresh_share(const Values& scalars) { return std::pow(std::max(1.0, scalars[5]), -0.8); }

/// U of a parameter of that shape, given the gradient and the scales from operand `first` on.
Values steps_of_adafactor(const ReferenceCall& c, std::size_t gradient, std::size_t first) {
  Values u = c.in[gradient];
  const bool factored = c.in.size() > first + 1;
  const Shape& shape = c.types[gradient].shape;
  const PlacesWithout rows(shape, factored ? columns_of(c) : -1), columns(shape, factored ? rows_of(c) : -1);
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] *= c.in[first][rows.of(i)] * (factored ? c.in[first + 1][columns.of(i)] : 1);
  return u;
}

double sum_of_squares(const Values& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return sum;
}

}  // namespace

double gradient_factor_reference(const ReferenceCall& c, const Values& scalars, double square_norm) {
  const double clip = c.attributes.number("clip", 0), norm = std::sqrt(square_norm) * scalars[4];
  return scalars[4] * (clip > 0 && norm > clip ? clip / norm : 1);
}

ReferenceResults adafactor_sums_reference(const ReferenceCall& c) {
  const PlacesWithout rows(c.types[0].shape, columns_of(c)), columns(c.types[0].shape, rows_of(c));
  ReferenceResults sums{Values(rows.count(), 0.0), Values(columns.count(), 0.0)};
  for (std::size_t i = 0; i < c.in[0].size(); ++i) {
    sums[0][rows.of(i)] += c.in[0][i] * c.in[0][i];
    sums[1][columns.of(i)] += c.in[0][i] * c.in[0][i];
  }
  return sums;
}

ReferenceResults adafactor_factors_reference(const ReferenceCall& c) {
  const auto row = static_cast<std::size_t>(rows_of(c)), column = static_cast<std::size_t>(columns_of(c)) - 1;
  const double factor = gradient_factor_reference(c, c.in[4], c.in[5][0]), fresh = fresh_share(c.in[4]);
  Values r = c.in[0], k = c.in[1];
  const auto rows = static_cast<double>(c.extent(0, row)), columns = static_cast<double>(c.extent(1, column));
  for (std::size_t i = 0; i < r.size(); ++i)
    r[i] = (1 - fresh) * r[i] + fresh * (c.in[2][i] * factor * factor / columns + 1e-30);
  for (std::size_t i = 0; i < k.size(); ++i)
    k[i] = (1 - fresh) * k[i] + fresh * (c.in[3][i] * factor * factor / rows + 1e-30);
  const PlacesWithout matrix(c.types[0].shape, rows_of(c));
  Values mean(matrix.count(), 0.0), row_scale, column_scale;
  for (std::size_t i = 0; i < r.size(); ++i) mean[matrix.of(i)] += r[i] / rows;
  for (std::size_t i = 0; i < r.size(); ++i)
    row_scale.push_back(factor * std::sqrt(mean[matrix.of(i)] / r[i]));
  for (const double x : k) column_scale.push_back(1 / std::sqrt(x));
  return {r, k, row_scale, column_scale};
}

ReferenceResults adafactor_moment_reference(const ReferenceCall& c) {
  const double factor = gradient_factor_reference(c, c.in[2], c.in[3][0]), fresh = fresh_share(c.in[2]);
  Values v = c.in[0], scale;
  for (std::size_t i = 0; i < v.size(); ++i) {
    v[i] = (1 - fresh) * v[i] + fresh * (std::pow(c.in[1][i] * factor, 2) + 1e-30);
    scale.push_back(factor / std::sqrt(v[i]));
  }
  return {v, scale};
}

ReferenceResults adafactor_squares_reference(const ReferenceCall& c) {
  return {{sum_of_squares(steps_of_adafactor(c, 1, 2)), sum_of_squares(c.in[0])}};
}

ReferenceResults adafactor_reference(const ReferenceCall& c, std::size_t first) {
  const Values u = steps_of_adafactor(c, first, first + 4), &squares = c.in[first + 1];
  const double elements = c.attributes.number("elements"), rate = c.in[first + 2][0];
  const double largest = std::max(1.0, std::sqrt(squares[0] / elements)),
               size = std::max(1e-3, std::sqrt(squares[1] / elements));
  Values w = c.in[0];
  for (std::size_t i = 0; i < w.size(); ++i)
    w[i] -= rate * (c.attributes.number("weight_decay") * w[i] + size * u[i] / largest);
  return first > 1 ? ReferenceResults{w, w} : ReferenceResults{w};
}

}  // namespace alpa
