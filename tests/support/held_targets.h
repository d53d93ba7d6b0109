#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "libalpa/base/error.h"

// What benches have in common.
namespace alpa {

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Counts the targets of a bench.
class HeldTargets {
 public:
  void hold(const std::string& what, double value, bool is_reached) {
    ++all_;
    reached_ += is_reached;
    fmt::print("  {} {:<70} {:.3f}\n", is_reached ? "reached" : "missed ", what, value);
  }
  bool finish() const {
    fmt::print("\n{} of {} targets reached\n", reached_, all_);
    return reached_ == all_;
  }

 private:
  int reached_ = 0, all_ = 0;
};

/// The whole of a bench's main(): what is thrown is its message and its status.
inline int run_bench(const char* name, int argc, char** argv,
                     int (*run)(const std::vector<std::string>& words)) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return static_cast<int>(error.kind());
  }
}

}  // namespace alpa
