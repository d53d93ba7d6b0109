#pragma once
#include <string>
#include <vector>

#include "tests/kernels/cases.h"
#include "tests/support/kernel_runner.h"

namespace alpa {

/// Where in a run the cases are computed.
inline constexpr RunPoint kPoint{.seed = 42, .step = 7, .first_sample = 3};

/// A case with its letters replaced by types and values.
struct PreparedCase {
  const OpDef* op;
  std::vector<TensorType> operands, results;
  Attributes attributes;
  std::vector<Values> values;

  OpCall call() const { return {operands, attributes}; }
  KernelRun run() const;                 ///< on whole tensors
  std::vector<Values> expected() const;  ///< by the loop nest
};

PreparedCase prepare(const OpCase&, DType);

/// What results put together from tiles mean: themselves, of rows and their ids (OpDef::joins_rows) the table
/// that these add up to.
std::vector<Values> meaning(const PreparedCase&, const std::vector<Values>& results);

/// The element types that letters t and b stand for in turn on such devices; one where the case has no such
/// operand.
std::vector<DType> types_of(const OpCase&, DeviceKind);

/// Elements are sums of up to some hundred f32 products of order 1, so their error is a few 1e-6 of the
/// largest; rounding a result to bf16 adds at most 2^-9 of it, to f16 2^-12. `has_rounded_terms`: one factor
/// of each product is rounded so too. Without their signs, the products of an element add up to no more than
/// twice the largest.
void expect_near(const Values& actual, const Values& expected, DType stored, const std::string& what,
                 bool has_rounded_terms = false);
void expect_all_near(const std::vector<Values>& actual, const std::vector<Values>& expected,
                     const PreparedCase&);

}  // namespace alpa
