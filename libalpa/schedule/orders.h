#pragma once
#include <vector>

#include "libalpa/schedule/stage_run.h"

namespace alpa {

// One for each line of the table.
std::vector<StageRun> gpipe_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> one_f_one_b_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> eager_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> split_order(StageIndex stage, int stages, int micro_batches);
std::vector<StageRun> zero_bubble_order(StageIndex stage, int stages, int micro_batches);

/// `lead` forwards, then backward and forward in turn.
std::vector<StageRun> alternating(int lead, int micro_batches);

/// The same with the backward split: gradients of weights come `delay` micro-batches after those that the
/// stage before waits for, the last ones at the end. Without delay the backward is whole.
std::vector<StageRun> alternating_split(int lead, int delay, int micro_batches);

}  // namespace alpa
