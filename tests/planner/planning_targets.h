#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace alpa {

struct SpeedTarget {
  std::string model, cluster;
  std::string optimizer;  ///< in place of the model's; "": the model's
  double seconds = 0;
  bool refused = false;  ///< no plan is to fit
};

struct SpeedTargets {
  double largest_memory_gib = 0;
  std::vector<SpeedTarget> cases;
  SpeedTarget scaling;
  std::vector<std::int64_t> devices;
  double largest_exponent = 0;
  SpeedTarget kept;       ///< planned twice with --cache
  double least_gain = 0;  ///< how many times as fast the second time is
};

/// A published plan and what it reached; its pin is of the model's name.
struct PublishedRow {
  std::string model;
  int devices = 1;
  double tflops = 0;   ///< reached by each device
  double pflop = 0;    ///< of a step as that is counted; 0: by the model's paper_flops
  std::string excuse;  ///< why its replay may be off; "": it may not
};

/// Rows of one kind of model, the first of one device.
struct PublishedFamily {
  std::string name;
  std::string blocks;                ///< file of blocks of its own, beside the targets; "": none
  std::vector<std::string> systems;  ///< methods that stand for other systems
  std::vector<PublishedRow> rows;
};

struct QualityTargets {
  std::string cluster;
  double largest_deviation = 0;  ///< of a replayed row from the published one, as a part of it
  std::int64_t most_excuses = 0;
  std::vector<PublishedFamily> families;
  double least_gain_over_deepspeed = 0;  ///< on several nodes
  double most_crossing_ms = 0;           ///< between stages of gpt-39b, for each micro-batch
  double largest_gap = 0;                ///< of a step to the bound, as a part of the bound
};

struct PlanningTargets {
  SpeedTargets speed;
  QualityTargets quality;
};

/// Reads planning_targets.toml. Throws Error(input) with all faults.
PlanningTargets read_planning_targets();

}  // namespace alpa
