#include "libalpa/solver/integer_program.h"

#include <Cbc_C_Interface.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "libalpa/solver/guarded_child.h"

namespace alpa {
namespace {

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using Model = std::unique_ptr<Cbc_Model, DeleteModel>;

// CBC takes a matrix by columns.
void load(Cbc_Model* model, const IntegerProgram& program) {
  const int columns = program.columns();
  std::vector<int> start(columns + 1, 0), row(program.entry.size());
  std::vector<double> value(program.entry.size());
  for (int c : program.column) ++start[c + 1];
  for (int c = 0; c < columns; ++c) start[c + 1] += start[c];
  std::vector<int> next(start.begin(), start.end() - 1);
  for (int r = 0; r < program.rows(); ++r) {
    for (int k = program.row_start[r]; k < program.row_start[r + 1]; ++k) {
      const int at = next[program.column[k]]++;
      row[at] = r;
      value[at] = program.entry[k];
    }
  }
  const std::vector<double> lower(columns, 0), upper(columns, 1);
  Cbc_loadProblem(model, columns, program.rows(), start.data(), row.data(), value.data(), lower.data(),
                  upper.data(), program.objective.data(), program.row_lower.data(), program.row_upper.data());
  for (int c = 0; c < columns; ++c) {
    if (program.is_integer[c]) Cbc_setInteger(model, c);
  }
}

void set_start(Cbc_Model* model, const IntegerProgram& program, const std::vector<double>& start) {
  std::vector<int> index;
  std::vector<double> value;
  for (int c = 0; c < program.columns(); ++c) {
    if (program.is_integer[c]) index.push_back(c), value.push_back(start[c]);
  }
  Cbc_setMIPStartI(model, static_cast<int>(index.size()), index.data(), value.data());
}

// What goes through the pipe: status, bound, and the solution if there is one.
std::vector<double> solve(const IntegerProgram& program, const IntegerProgramOptions& options) {
  const Model model(Cbc_newModel());
  load(model.get(), program);
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "sec", fmt::format("{}", options.time_limit_s).c_str());
  Cbc_setParameter(model.get(), "maxN", fmt::format("{}", options.max_nodes).c_str());
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allow", fmt::format("{}", options.absolute_gap).c_str());
  if (!options.start.empty()) set_start(model.get(), program, options.start);
  Cbc_solve(model.get());

  using Status = IntegerProgramResult::Status;
  Status status = Status::stopped;
  if (Cbc_isProvenInfeasible(model.get())) status = Status::infeasible;
  if (Cbc_isProvenOptimal(model.get())) status = Status::optimal;
  std::vector<double> result{static_cast<double>(status), Cbc_getBestPossibleObjValue(model.get())};
  if (const double* best = Cbc_bestSolution(model.get()); best != nullptr && status != Status::infeasible) {
    result.insert(result.end(), best, best + program.columns());
  }
  return result;
}

}  // namespace

int IntegerProgram::add_column(double cost, bool integer) {
  objective.push_back(cost);
  is_integer.push_back(integer);
  return columns() - 1;
}

void IntegerProgram::add_entry(int to_column, double value) {
  column.push_back(to_column);
  entry.push_back(value);
}

void IntegerProgram::end_row(double lower, double upper) {
  row_lower.push_back(lower);
  row_upper.push_back(upper);
  row_start.push_back(static_cast<int>(entry.size()));
}

IntegerProgramResult solve_integer_program(const IntegerProgram& program,
                                           const IntegerProgramOptions& options) {
  // CBC looks at its own limit only between phases; the child is given a little more, then killed.
  constexpr double grace_s = 1;
  const auto numbers = run_in_child([&] { return solve(program, options); }, options.time_limit_s + grace_s);
  IntegerProgramResult result;
  if (!numbers || numbers->size() < 2) return result;
  result.status = static_cast<IntegerProgramResult::Status>(numbers->front());
  result.bound = (*numbers)[1];
  result.solution.assign(numbers->begin() + 2, numbers->end());
  return result;
}

}  // namespace alpa
