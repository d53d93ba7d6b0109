#pragma once
#include <string>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/graph/training_options.h"

namespace alpa {

/// What the update of a parameter goes by.
struct ParameterGradient {
  StateIndex parameter;
  ValueIndex value;  ///< sum over the micro-batches of a step
  int layer = 0;     ///< that the update is of
};

/// Gradients of steps before, in states that hold them back: updates go by those of so many steps ago, zeros
/// in the first steps, so that devices have all of a step to add them up.
class DelayedGradients {
 public:
  /// Gives parameters the gradients that are as old as that in place of those of this step.
  DelayedGradients(GraphBuilder&, std::int64_t steps, std::vector<ParameterGradient>&);
  /// Once all else of the update is there.
  void keep(GraphBuilder&);

 private:
  struct Held {
    ParameterGradient of_this_step;
    std::vector<StateIndex> states;  ///< of the step before, of that before it, and so on
  };
  std::vector<Held> held_;
};

/// Replaces gradients of two dimensions or more by products of two factors of that rank, where these have at
/// most half of the elements (libalpa/graph/low_rank.h). Throws Error(input) where one of these is no f32, or
/// there is none.
void compress_gradients(GraphBuilder&, std::int64_t rank, std::vector<ParameterGradient>&);

/// What of a training graph's gradients changes results beyond the order of sums: "gradients are sent in
/// bf16, used 1 step later"; "" where nothing does.
std::string lossy_gradients_text(const Graph&);

}  // namespace alpa
