#pragma once
#include <string>
#include <vector>

#include "libalpa/base/infinity.h"

namespace alpa {

class StopRequest;

/// Minimise objective * x subject to row_lower <= A x <= row_upper and 0 <= x <= 1, some x integer.
struct IntegerProgram {
  std::vector<double> objective;  ///< per column
  std::vector<char> is_integer;   ///< per column
  std::vector<double> row_lower, row_upper;
  std::vector<int> row_start{0};  ///< where each row's entries begin; one more than rows
  std::vector<int> column;        ///< per entry
  std::vector<double> entry;

  int columns() const { return static_cast<int>(objective.size()); }
  int rows() const { return static_cast<int>(row_lower.size()); }
  int add_column(double cost, bool integer);
  void add_entry(int to_column, double value);  ///< into the row that end_row() will close
  void end_row(double lower, double upper);
};

struct IntegerProgramOptions {
  double absolute_gap = 0;  ///< stop when the incumbent is proven to be this close
  int max_nodes = 100'000;  ///< of the branch-and-bound tree
  double time_limit_s = 60;
  std::vector<double> start;          ///< a solution to begin with (its integer columns count); empty: none
  double cutoff = infinity;           ///< solutions above it are not wanted
  const StopRequest* stop = nullptr;  ///< asked for, the process is killed; null: nobody asks
};

struct IntegerProgramResult {
  enum class Status { optimal, infeasible, stopped, failed };
  /// infeasible: no solution, or none below the cutoff; failed: killed at the time limit, or crashed
  Status status = Status::failed;
  std::vector<double> solution;  ///< empty: none found
  double bound = 0;              ///< on the objective; meaningless when failed or infeasible
};

}  // namespace alpa
