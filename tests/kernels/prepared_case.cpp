#include "tests/kernels/prepared_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/reference.h"
#include "tests/support/graph_structure.h"

namespace alpa {
namespace {

TensorType operand_type(const std::string& word, DType dtype) {
  const char letter = word[0];
  TensorType type{std::string_view("irgd").find(letter) != std::string_view::npos ? DType::i32
                  : letter == 'b' ? (dtype == DType::f32 ? DType::bf16 : dtype)
                  : letter == 't' || letter == 's' || letter == 'l' ? dtype
                                                                    : DType::f32,
                  {}};
  std::istringstream extents(word.substr(1));
  char separator = 0;
  for (std::int64_t extent = 0; extents >> separator && extents >> extent;) type.shape.push_back(extent);
  return type;
}

/// A random order of `count` things.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  const Values keys = uniform_values(static_cast<std::int64_t>(count), 0, 1, seed);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

/// In each row, steps of twice the margin in random order, moved by less than half the margin.
Values logits(const Shape& shape, std::uint64_t seed) {
  Values values = uniform_values(element_count(shape), -0.5 * kLogitMargin, 0.5 * kLogitMargin, seed);
  const auto width = static_cast<std::size_t>(shape.back());
  for (std::size_t row = 0; row < values.size() / width; ++row) {
    const std::vector<std::size_t> order = shuffled(width, 1000 * seed + row);
    for (std::size_t e = 0; e < width; ++e)
      values[row * width + e] +=
          2 * kLogitMargin * (static_cast<double>(order[e]) - static_cast<double>(width) / 2);
  }
  return values;
}

/// The first of a random order of the ids and of a quarter as many -1.
Values routes(const Shape& shape, int ids, std::uint64_t seed) {
  const auto groups = static_cast<std::size_t>(shape[0]);
  const std::size_t per_group = static_cast<std::size_t>(element_count(shape)) / groups;
  Values values;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::vector<std::size_t> order =
        shuffled(std::max(static_cast<std::size_t>(ids) * 5 / 4, per_group), 1000 * seed + g);
    for (std::size_t i = 0; i < per_group; ++i)
      values.push_back(order[i] < static_cast<std::size_t>(ids) ? static_cast<double>(order[i]) : -1);
  }
  return values;
}

/// In each row a document begins at the first place, and at each other with a chance of 1 / `length`.
Values document_starts(const Shape& shape, int length, std::uint64_t seed) {
  Values starts = uniform_values(element_count(shape), 0, 1, seed);
  const auto width = static_cast<std::size_t>(shape.back());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t place = i % width;
    const bool begins = place > 0 && starts[i] < 1.0 / length;
    starts[i] = place == 0 ? 0 : begins ? static_cast<double>(place) : starts[i - 1];
  }
  return starts;
}

}  // namespace

KernelRun PreparedCase::run() const {
  KernelRun run;
  run.op = op;
  run.operands = operands;
  run.results = results;
  run.attributes = attributes;
  run.point = kPoint;
  return run;
}

std::vector<Values> PreparedCase::expected() const { return reference(*op, call(), values, kPoint); }

PreparedCase prepare(const OpCase& c, DType dtype) {
  PreparedCase p{&op_catalog().find(c.op), {}, {}, c.attributes, {}};
  std::istringstream words(c.operands);
  for (std::string word; words >> word;) {
    const TensorType type = operand_type(word, dtype);
    const std::int64_t count = element_count(type.shape);
    const std::uint64_t seed = 100 + p.values.size();
    Values values = word[0] == 'i'   ? uniform_values(count, -1, c.ids, seed)
                    : word[0] == 'l' ? logits(type.shape, seed)
                    : word[0] == 'r' ? routes(type.shape, c.ids, seed)
                    : word[0] == 'g' ? graph_structure(type.shape, c.attributes.integer("size_b"), seed)
                    : word[0] == 'd' ? document_starts(type.shape, c.ids, seed)
                    : word[0] == 'p' ? uniform_values(count, 0.5, 1.5, seed)
                                     : uniform_values(count, -1, 1, seed);
    if (word[0] == 'i')
      for (double& id : values) id = std::floor(id);
    p.values.push_back(rounded(values, type.dtype));
    p.operands.push_back(type);
  }
  p.results = result_types(*p.op, p.call());
  return p;
}

std::vector<DType> types_of(const OpCase& c, DeviceKind kind) {
  const bool any = c.operands.find_first_of("tl") != std::string::npos;
  if (!any && c.operands.find('b') == std::string::npos) return {DType::f32};
  std::vector<DType> types{DType::bf16};
  if (any) types.insert(types.begin(), DType::f32);
  if (kind == DeviceKind::cuda) types.push_back(DType::f16);
  return types;
}

void expect_near(const Values& actual, const Values& expected, DType stored, const std::string& what,
                 bool has_rounded_terms) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  const double relative = stored == DType::bf16 ? 0x1p-8 : stored == DType::f16 ? 0x1p-11 : 1e-5;
  const double of_largest = has_rounded_terms && stored != DType::f32 ? relative : 1e-5;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], of_largest * largest + relative * std::abs(expected[i]))
        << what << ", element " << i;
}

std::vector<Values> meaning(const PreparedCase& p, const std::vector<Values>& results) {
  if (!p.op->joins_rows) return results;
  const Values &rows = results.at(0), &ids = results.at(1);
  const std::size_t width = rows.size() / ids.size();
  Values table;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    const auto row = static_cast<std::size_t>(ids[i]) * width;
    if (table.size() < row + width) table.resize(row + width);
    for (std::size_t c = 0; c < width; ++c) table[row + c] += rows[i * width + c];
  }
  return {table};
}

void expect_all_near(const std::vector<Values>& actual, const std::vector<Values>& expected,
                     const PreparedCase& p) {
  ASSERT_EQ(actual.size(), expected.size());
  // What multiplies 16 bits (tensor cores, and CPUs that can) takes the weights of values so.
  const bool has_rounded_terms = p.op->name.starts_with("attention");
  for (std::size_t r = 0; r < expected.size(); ++r)
    expect_near(actual[r], expected[r], p.results[r].dtype, "result " + std::to_string(r), has_rounded_terms);
}

}  // namespace alpa
