#include "libalpa/solver/integer_program.h"

#include <filesystem>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/child_process.h"
#include "libalpa/solver/integer_program_exchange.h"

namespace alpa {

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
  // CBC looks at its own limit only between phases; the process is given a little more, then killed.
  constexpr double grace_s = 1;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto answer = run_process({folder / "alpa-cbc"}, encode(program, options),
                                  Deadline(options.time_limit_s + grace_s, options.stop));
  if (!answer) return {};
  return decode_result(*answer).value_or(IntegerProgramResult{});
}

}  // namespace alpa
