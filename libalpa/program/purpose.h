#pragma once

namespace alpa {

/// What a program is for.
enum class Purpose {
  train,
  evaluate,  ///< forward only, dropout passes values through; states are where the training program has them
};

}  // namespace alpa
