#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/graph/training_options.h"
#include "libalpa/plan/plan.h"
#include "libalpa/trainer/training_data.h"

namespace alpa {

/// What a run is about to do.
struct RunFacts {
  const Plan& plan;
  std::int64_t parameters = 0;
  std::string device;
  std::int64_t input_bytes = 0;  ///< that samples take of a rank's host memory
  const TrainingData& data;
  const TrainingData* evaluation_data = nullptr;  ///< null: of `data`
  const TrainingOptions& options;
  std::int64_t total_steps = 0;  ///< of the run
  std::string lossy = {};        ///< lossy_gradients_text()
};

/// The lines that a log begins with.
std::vector<std::string> introduction(const RunFacts&);

/// What of that may not be meant. Evaluations come after so many steps; 0: never.
std::vector<std::string> first_warnings(const RunFacts&, std::int64_t evaluate_every);

}  // namespace alpa
