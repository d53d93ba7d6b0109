#pragma once
#include <cstddef>
#include <initializer_list>
#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/h5/file.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// What PyTorch did with a tiny model of tests/data: the file that tests/reference/*.py wrote.
class Reference {
 public:
  /// Relative. It was trained in float64: this leaves room for ten steps in float32.
  static constexpr double tolerance = 1e-4;

  explicit Reference(const std::string& model);

  Values losses() const;          ///< of each step: mean per target
  Values gradient_norms() const;  ///< of each step: global, before clipping

  /// What a state starts from: the weights that were drawn, and zeros.
  Values initial(const Graph&, const State&) const;

  /// What a dataset has at these indices of its first dimensions.
  Values stored(const std::string& path, DType dtype, std::initializer_list<std::size_t> indices) const;

  /// In a step of `batch` samples: tokens that have a target, vertices that have a label, or all samples.
  double targets(std::size_t step, std::int64_t batch) const;

  const H5Reader& file() const { return file_; }

 private:
  H5Reader file_;
};

}  // namespace alpa
