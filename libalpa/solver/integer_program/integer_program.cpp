#include "libalpa/solver/integer_program/integer_program.h"

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

}  // namespace alpa
