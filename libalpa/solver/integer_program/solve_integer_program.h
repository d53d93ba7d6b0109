#pragma once
#include "libalpa/solver/integer_program/integer_program.h"

namespace alpa {

/// Solves with CBC in a process of its own (alpa-cbc, beside the running command): silent, killed when it
/// overruns the time limit by more than a moment. May be called from several threads. Throws Error(run_time)
/// when the process cannot be started.
IntegerProgramResult solve_integer_program(const IntegerProgram&, const IntegerProgramOptions&);

}  // namespace alpa
