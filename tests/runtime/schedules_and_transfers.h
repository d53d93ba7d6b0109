#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "libalpa/schedule/schedule.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {

inline const char* method_of(const PipelineSchedule& schedule) {
  if (!schedule.shares_meshes()) return "data, tensor x tensor";
  return schedule.placement == StagePlacement::looped ? "interleaved" : "v-shaped";
}

/// Every schedule with every strategy of transfers: from a node of two devices to two such nodes that all
/// need all of it, and back; where stages share meshes, two on each of three nodes.
inline std::vector<TinyCase> schedules_and_transfers() {
  std::vector<TinyCase> cases;
  for (const PipelineSchedule& schedule : schedules())
    for (const Word<TransferStrategy>& word : transfer_strategy_words())
      cases.push_back({.model = "gpt",
                       .method = method_of(schedule),
                       .devices = 6,
                       .micro_batches = 4,
                       .schedule = schedule.name,
                       .nodes = 3,
                       .transfers = std::string(word.name)});
  return cases;
}

inline bool passes_on(const Program& program) {
  return std::ranges::any_of(program.transfers,
                             [](const StageTransfer& transfer) { return passes_on(transfer.route); });
}

/// Losses of five steps, and the norm of the first one's gradients. 1e-5 is some hundred roundings of f32.
inline void expect_as_serial(const TinyCurve& run, const TinyCurve& serial) {
  constexpr double near = 1e-5;
  ASSERT_GE(run.losses.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(run.losses[i], serial.losses[i], near * serial.losses[i]) << "step " << i;
  EXPECT_NEAR(run.norms[0], serial.norms[0], near * serial.norms[0]);
}

}  // namespace alpa
