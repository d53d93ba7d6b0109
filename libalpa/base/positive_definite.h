#pragma once
#include <vector>

namespace alpa {

/// x of A x = b by Cholesky's method, with A [n, n] symmetric and positive definite, row-major, and b [n].
/// Where A is singular but for rounding, some x of finite numbers.
std::vector<double> solved(std::vector<double> matrix, std::vector<double> right);

}  // namespace alpa
