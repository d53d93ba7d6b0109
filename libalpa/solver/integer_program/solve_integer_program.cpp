#include "libalpa/solver/integer_program/solve_integer_program.h"

#include <filesystem>

#include "libalpa/base/deadline.h"
#include "libalpa/solver/integer_program/child_process.h"
#include "libalpa/solver/integer_program/integer_program_exchange.h"

namespace alpa {

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
