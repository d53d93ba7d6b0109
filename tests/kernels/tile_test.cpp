#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "libalpa/ops/catalog.h"
#include "tests/kernels/backends.h"
#include "tests/kernels/prepared_case.h"

namespace alpa {
namespace {

/// Where a factor appears in a tensor: the dimension whose outermost factor it is. Nothing where it is
/// absent.
std::optional<std::size_t> dimension_of(const std::vector<DimensionFactors>& dimensions, int factor) {
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    if (!dimensions[d].empty() && dimensions[d][0] == factor) return d;
  return std::nullopt;
}

/// Whether a factor can be split: it is not whole, long enough, and outermost wherever it appears.
bool splits(const ShardingRule& rule, int factor) {
  const Factor& f = rule.factors[factor];
  if (f.whole || f.size < 2) return false;
  for (const auto* tensors : {&rule.operands, &rule.results})
    for (const auto& dimensions : *tensors)
      for (const DimensionFactors& dimension : dimensions)
        if (std::find(dimension.begin(), dimension.end(), factor) > dimension.begin() &&
            std::find(dimension.begin(), dimension.end(), factor) < dimension.end())
          return false;
  return true;
}

/// The box of a tensor that holds part [first, first + count) of `size` values of a factor.
struct Part {
  Shape origin, extent;

  Part(const Shape& whole, std::optional<std::size_t> dimension, std::int64_t size, std::int64_t first,
       std::int64_t count)
      : origin(whole.size(), 0), extent(whole) {
    if (!dimension) return;
    const std::int64_t inner = whole[*dimension] / size;
    origin[*dimension] = first * inner;
    extent[*dimension] = count * inner;
  }
};

/// Runs the kernel on each part of a factor and puts the results together as the rule says: tiles beside each
/// other, results without the factor summed (or their maximum taken), by the kernel itself where parts go
/// round.
std::vector<Values> results_by_parts(Device& device, const PreparedCase& p, const ShardingRule& rule,
                                     int factor) {
  const Factor& f = rule.factors[factor];
  std::vector<Values> wholes(p.results.size());
  // Unequal parts, and one part of length 1.
  const std::int64_t cut = f.size / 3 + 1;
  std::array parts{std::pair{std::int64_t{0}, cut}, std::pair{cut, f.size - cut}};
  // The first queries see none of the later keys.
  if (f.ring >= 0) std::swap(parts[0], parts[1]);
  for (const auto& [first, count] : parts) {
    const bool further = first != parts[0].first, resumes = f.ring >= 0 && further;
    KernelRun run = p.run();
    std::vector<Values> operands;
    const auto place = [&, first = first, count = count](const Shape& whole,
                                                         const std::vector<DimensionFactors>& dimensions) {
      return Part(whole, dimension_of(dimensions, factor), f.size, first, count);
    };
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      const Part part = place(p.operands[i].shape, rule.operands[i]);
      operands.push_back(slice(p.values[i], p.operands[i].shape, part.origin, part.extent));
      run.operands[i].shape = part.extent;
      run.operand_origins.push_back(part.origin);
      run.operand_wholes.push_back(p.operands[i].shape);
    }
    if (p.attributes.has("size_" + f.name)) run.attributes.set("size_" + f.name, count);
    for (std::size_t r = 0; r < p.results.size(); ++r) {
      const Part part = place(p.results[r].shape, rule.results[r]);
      run.results[r].shape = part.extent;
      run.result_origins.push_back(part.origin);
      run.result_wholes.push_back(p.results[r].shape);
    }
    run.accumulate = resumes;
    for (std::size_t r = 0; r < p.results.size() && resumes; ++r)
      run.results_before.push_back(
          rule.reduces(static_cast<int>(r), factor)
              ? wholes[r]
              : Values(static_cast<std::size_t>(element_count(run.results[r].shape))));
    const std::vector<Values> results = run_kernel(device, run, operands);
    for (std::size_t r = 0; r < results.size(); ++r) {
      wholes[r].resize(static_cast<std::size_t>(element_count(p.results[r].shape)));
      const bool reduced = rule.reduces(static_cast<int>(r), factor) && further && !resumes;
      for_box(p.results[r].shape, run.result_origins[r], run.results[r].shape,
              [&](std::size_t to, std::size_t from) {
                double& element = wholes[r][to];
                element = !reduced    ? results[r][from]
                          : f.maximum ? std::max(element, results[r][from])
                                      : element + results[r][from];
              });
    }
  }
  return wholes;
}

/// On that backend, the operator of that name.
class Tiles : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {};

TEST_P(Tiles, OfEveryFactorMakeUpTheWhole) {
  const auto& [backend, op] = GetParam();
  const auto device = backend.make();
  for (const OpCase& c : cases_of(op_catalog().find(op))) {
    const PreparedCase p = prepare(c, DType::f32);
    // Each operand of a global sum is split in its own way, so programs give them to kernels one at a time.
    if (p.op->reduces_globally && p.operands.size() > 1) continue;
    const ShardingRule rule = rule_of(*p.op, p.call());
    for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
      if (!splits(rule, factor)) continue;
      SCOPED_TRACE(case_text(c) + ", factor " + rule.factors[factor].name);
      expect_all_near(meaning(p, results_by_parts(*device, p, rule, factor)), meaning(p, p.expected()), p);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, Tiles, ::testing::ValuesIn(backends_with(op_names())), kBackendAndOp);

}  // namespace
}  // namespace alpa
