#pragma once
#include <optional>
#include <string>

#include "libalpa/solver/integer_program/integer_program.h"

namespace alpa {

/// What solve_integer_program() and the process that runs CBC say to each other, as bytes of this machine.
///@{
struct IntegerProgramTask {
  IntegerProgram program;
  IntegerProgramOptions options;
};
std::string encode(const IntegerProgram&, const IntegerProgramOptions&);
std::string encode(const IntegerProgramResult&);

/// Nothing when the bytes are not a whole, consistent message.
std::optional<IntegerProgramTask> decode_task(const std::string&);
std::optional<IntegerProgramResult> decode_result(const std::string&);
///@}

}  // namespace alpa
