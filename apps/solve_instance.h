#pragma once
#include <filesystem>

#include "libalpa/base/log.h"

namespace alpa {

class OptionsVisitor;

struct SolveOptions {
  double time_limit_s = 60;  ///< wall seconds, reading and writing included
  int threads = 0;           ///< 0: as many as the process may run on
};

/// The one list of the options that are numbers (libalpa/base/options.h).
void describe(SolveOptions&, OptionsVisitor&);

/// Solves the strategy-selection problem of a contest instance (libalpa/solver/selection/contest_instance.h),
/// prints cost, certified bound, gap and seconds, and writes the strategies as a JSON array. Returns the exit
/// status; throws Error(infeasible) where no choice fits or none was found.
int solve_instance(const std::filesystem::path& instance, const std::filesystem::path& solution,
                   const SolveOptions&, Log&);

}  // namespace alpa
