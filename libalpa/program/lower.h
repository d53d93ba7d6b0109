#pragma once
#include "libalpa/program/program.h"

namespace alpa {

enum class Purpose {
  train,
  evaluate,  ///< forward only, dropout passes values through; states are where the training program has them
};

/// The program of a plan: pure, and the same on every rank. Expects check_plan to have passed.
Program lower(const Graph&, const Plan&, Purpose = Purpose::train);

/// One stage alone, for pricing it: transfers are listed with the neighbour's side left out.
StageProgram lower_stage(const Graph&, const Plan&, int stage, Purpose = Purpose::train);

}  // namespace alpa
